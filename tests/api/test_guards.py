"""What is refused before any route: foreign hosts, cross-site changes; and the headers of every answer."""

import pytest
from fastapi.testclient import TestClient

from app.runs import Services
from app.settings import Settings
from app.web import create_rest
from tests.api.refusals import ROUTES, assert_refusal

OWN = "http://localhost:7860"


@pytest.mark.parametrize("host", ["localhost", "localhost:7860", "LOCALHOST:1", "127.0.0.1:7860", "[::1]:7860"])
def test_loopback_names_are_answered(empty: TestClient, host: str):
    assert empty.get("/api/v1/health", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:7860", "localhost.evil.example", "", "[", "127.0.0.1.nip.io"]
)
def test_foreign_hosts_are_refused_on_every_route(empty: TestClient, host: str):
    for method, path in ROUTES:
        assert_refusal(empty.request(method, path, headers={"host": host}), 400, "unknown_host")


def test_configured_names_are_answered(services: Services):
    settings = services.settings.model_copy(update={"host": "10.1.2.3", "allowed_hosts": ("gpu.lab",)})
    named = Services(store=services.store, queue=services.queue, runs=services.runs, settings=settings)
    with TestClient(create_rest(named), base_url="http://gpu.lab") as client:
        assert client.get("/api/v1/health").status_code == 200
        assert client.get("/api/v1/health", headers={"host": "10.1.2.3:7860"}).status_code == 200
        assert client.get("/api/v1/health", headers={"host": "10.1.2.4:7860"}).status_code == 400


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:8888"},
        {"origin": "http://localhost"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", "origin": OWN},
    ],
)
def test_changes_from_other_sites_are_refused_on_every_route(empty: TestClient, headers: dict):
    for _, path in ROUTES:
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            assert_refusal(empty.request(method, path, headers=headers), 403, "cross_site")


@pytest.mark.parametrize(
    "headers", [{}, {"origin": OWN}, {"origin": OWN, "sec-fetch-site": "same-origin"}, {"sec-fetch-site": "none"}]
)
def test_own_pages_and_programs_may_change(empty: TestClient, headers: dict):
    assert empty.post("/api/v1/runs/1/cancel", headers=headers).json()["error"]["code"] == "not_found"


def test_reading_is_allowed_from_a_link_on_another_site(empty: TestClient):
    assert empty.get("/api/v1/health", headers={"sec-fetch-site": "cross-site"}).status_code == 200


@pytest.mark.parametrize("path", ["/api/v1/health", "/api/v1/nothing", "/media/x"])
def test_answers_of_the_interface_carry_strict_headers(empty: TestClient, path: str):
    headers = empty.get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert "access-control-allow-origin" not in headers


def test_a_fresh_installation_listens_to_loopback_names_only(settings: Settings):
    assert settings.host == "127.0.0.1"
    assert settings.allowed_hosts == ()
