"""Every route of the interface, and the one shape in which each refuses."""

from typing import Any

SHA = "0" * 64
ROUTES = (
    ("POST", "/api/v1/check"),
    ("POST", "/api/v1/runs"),
    ("GET", "/api/v1/runs"),
    ("GET", "/api/v1/runs/1"),
    ("POST", "/api/v1/runs/1/cancel"),
    ("GET", "/api/v1/runs/1/metrics"),
    ("GET", "/api/v1/runs/1/events"),
    ("GET", "/api/v1/runs/1/logs"),
    ("GET", "/api/v1/runs/1/steps"),
    ("GET", "/api/v1/runs/1/groups"),
    ("GET", "/api/v1/runs/1/completions"),
    ("GET", "/api/v1/groups/1"),
    ("GET", "/api/v1/rewards"),
    ("GET", "/api/v1/presets"),
    ("GET", "/api/v1/presets/demo-color-grpo"),
    ("GET", "/api/v1/workers"),
    ("GET", "/api/v1/health"),
    ("GET", "/api/v1/ready"),
    ("GET", f"/media/{SHA}/full"),
)
WITH_ID = [route for route in ROUTES if "/1" in route[1]]


def assert_refusal(answer: Any, status: int, code: str) -> dict:
    """The one shape of every refusal; returns what stands in it."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    body = answer.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"code", "message", "findings"}
    assert body["error"]["code"] == code
    assert body["error"]["message"]
    for finding in body["error"]["findings"]:
        assert set(finding) == {"level", "field", "message", "row"}
    return body["error"]
