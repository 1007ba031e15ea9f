"""Every refusal has one shape, names the field, repeats no input, and hostile bodies never cause a 500."""

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.runs import Services
from tests.api.refusals import ROUTES, SHA, WITH_ID, assert_refusal
from training.config import RunConfig


def post(client: TestClient, body: bytes | str, kind: str = "application/json") -> Any:
    return client.post("/api/v1/runs", content=body, headers={"content-type": kind})


def test_the_list_of_routes_is_complete(empty: TestClient):
    paths = empty.get("/api/v1/openapi.json").json()["paths"]
    documented = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    samples = {"{run_id}": "1", "{group_id}": "1", "{name}": "demo-color-grpo", "{sha256}": SHA, "{size}": "full"}

    def filled(path: str) -> str:
        for name, value in samples.items():
            path = path.replace(name, value)
        return path

    assert {(method, filled(path)) for method, path in documented} == set(ROUTES)


def test_methods_that_a_route_lacks_are_refused_in_the_one_shape(empty: TestClient):
    for path in {path for _, path in ROUTES}:
        known = {method for method, other in ROUTES if other == path}
        for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} - known:
            error = assert_refusal(answer := empty.request(method, path), 405, "method_not_allowed")
            assert set(answer.headers["allow"].split(", ")) == known
            assert path in error["message"]


@pytest.mark.parametrize(
    "path", ["/api", "/api/v1", "/api/v1/nothing", "/api/v2/runs", "/media", "/media/x", "/api/v1/runs/1/x"]
)
def test_unknown_paths_are_refused_in_the_one_shape(empty: TestClient, path: str):
    assert_refusal(empty.get(path), 404, "not_found")
    assert_refusal(empty.post(path), 404, "not_found")


def test_what_does_not_exist_is_refused_in_the_one_shape(empty: TestClient):
    for method, path in WITH_ID:
        error = assert_refusal(empty.request(method, path), 404, "not_found")
        assert "there is no" in error["message"]


@pytest.mark.parametrize("bad", ["x", "0", "-1", "1.5", "9" * 30, "%00"])
def test_ids_that_are_none_are_refused_by_name(empty: TestClient, bad: str):
    for method, path in WITH_ID:
        error = assert_refusal(empty.request(method, path.replace("/1", f"/{bad}")), 422, "invalid")
        assert error["findings"][0]["field"] in ("run_id", "group_id")


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("runs?limit=0", "limit"),
        ("runs?limit=501", "limit"),
        ("runs?state=asleep", "state.0"),
        ("runs?q=%00", "q"),
        ("runs?project=%00", "project"),
        ("runs?after=rubbish", "after"),
        ("runs?after=%00", "after"),
    ],
)
def test_bad_query_fields_are_named(empty: TestClient, query: str, field: str):
    error = assert_refusal(empty.get(f"/api/v1/{query}"), 422, "invalid")
    assert [finding["field"] for finding in error["findings"]] == [field]


def test_bad_fields_are_named_with_dots_and_their_input_is_not_repeated(empty: TestClient):
    secret = "hf_" + "s" * 30
    body = {
        "generation": {"num_generations": secret, "temperature": -1},
        "algorithm": {"name": "rloo", "beta": secret},
        "rewards": [{"name": "accuracy", "wieght": secret}],
        "tokken": secret,
    }
    answer = empty.post("/api/v1/runs", json=body)
    error = assert_refusal(answer, 422, "invalid")
    assert {finding["field"] for finding in error["findings"]} == {
        "generation.num_generations",
        "generation.temperature",
        "algorithm.beta",
        "rewards.0.wieght",
        "tokken",
    }
    assert secret not in answer.text


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b'{"generation": {"temperature": NaN}}', 422, "invalid"),
        (b'{"generation": {"temperature": Infinity}}', 422, "invalid"),
        (b'{"generation": {"temperature": 1e999}}', 422, "invalid"),
        (b'{"rewards": [{"name": "accuracy", "options": {"a": [NaN]}}]}', 422, "invalid"),
        (b'{"name": "\\ud800"}', 400, "not_json"),
        (b'{"rewards": [{"name": "accuracy", "options": {"\\udfff": 1}}]}', 400, "not_json"),
        (b'{"name": "a\\u0000b"}', 422, "invalid"),
        (b'{"model": {"path": "a\\u0000b"}}', 422, "invalid"),
        (b'{"rewards": [{"name": "accuracy", "options": {"a": {"b": "\\u0000"}}}]}', 422, "invalid"),
        (b'{"a\\u0000b": 1}', 422, "invalid"),
        (b"[" * 200_000, 400, "not_json"),
        (b'{"a":' * 100_000, 400, "not_json"),
        (b'{"rewards": [{"name": "a", "options": {"a": ' + b"[" * 99_000 + b"]" * 99_000 + b"}}]}", 400, "not_json"),
        (b'{"seed": ' + b"9" * 5000 + b"}", 400, "not_json"),
        (b'{"seed": 1e400}', 422, "invalid"),
        (b'{"name": "\xff"}', 400, "not_json"),
        (b"", 400, "not_json"),
        (b"null", 422, "invalid"),
        (b"[]", 422, "invalid"),
        (b'"x"', 422, "invalid"),
        (b'{"algorithm": {"name": "ppo"}}', 422, "invalid"),
        (b'{"algorithm": {}}', 422, "invalid"),
        (json.dumps({f"field{n}": 1 for n in range(20_000)}).encode(), 422, "invalid"),
    ],
    ids=range(23),
)
def test_hostile_json_is_refused(empty: TestClient, body: bytes, status: int, code: str):
    answer = post(empty, body)
    assert_refusal(answer, status, code)
    assert len(answer.content) < 50_000
    assert empty.get("/api/v1/runs").json()["items"] == []


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"a = " + b"[" * 200_000, 400, "not_toml"),
        (b"[" * 200_000, 400, "not_toml"),
        (b'name = "\\uD800"', 400, "not_toml"),
        (b"name = 'a\0b'", 400, "not_toml"),
        (b"name = '\xff'", 400, "not_toml"),
        (b"seed = " + b"9" * 5000, 400, "not_toml"),
        (b"name = 1\nname = 2", 400, "not_toml"),
        (b'name = "a\\u0000b"', 422, "invalid"),
        (b"[generation]\ntemperature = nan", 422, "invalid"),
        (b"[[rewards]]\nname = 'accuracy'\noptions = {a = -inf}", 422, "invalid"),
        (b"[[rewards]]\nname = 'accuracy'\noptions = {a = 2026-01-01}", 422, "invalid"),
    ],
    ids=range(11),
)
def test_hostile_toml_is_refused(empty: TestClient, body: bytes, status: int, code: str):
    assert_refusal(post(empty, body, "application/toml"), status, code)
    assert empty.get("/api/v1/runs").json()["items"] == []


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "application/yaml"]
)
def test_other_content_types_are_refused(empty: TestClient, kind: str):
    assert_refusal(post(empty, b"{}", kind), 415, "unsupported_media_type")


def test_a_body_over_one_megabyte_is_refused_by_its_announced_length(empty: TestClient):
    assert_refusal(post(empty, b" " * 1_000_001), 413, "too_large")


def test_a_body_over_one_megabyte_is_refused_while_it_streams(empty: TestClient):
    chunks = (b" " * 100_000 for _ in range(100))
    answer = empty.post("/api/v1/runs", content=chunks, headers={"content-type": "application/json"})
    assert_refusal(answer, 413, "too_large")


@pytest.mark.parametrize("key", ["", "a b", "x" * 201, "\u00e9".encode()])
def test_bad_idempotency_keys_are_named(empty: TestClient, key: str | bytes):
    answer = empty.post("/api/v1/runs", json={}, headers={"Idempotency-Key": key})
    error = assert_refusal(answer, 422, "invalid")
    assert error["findings"][0]["field"] == "Idempotency-Key"


def test_a_fault_of_the_server_says_nothing_of_its_inside(client: TestClient, services: Services, config: RunConfig):
    def fail(_: int) -> bool:
        raise RuntimeError("password=hunter2")

    services.queue.ring = fail
    answer = client.post("/api/v1/runs", json=config.model_dump(mode="json"))
    assert_refusal(answer, 500, "internal")
    assert "hunter2" not in answer.text
