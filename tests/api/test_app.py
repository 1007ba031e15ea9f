"""The whole application: REST, pages and trackio behind the same guards."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from app.settings import Settings
from app.store.migrate import upgrade
from app.web import create_app
from tests.api.refusals import assert_refusal


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    data_dir: Path = tmp_path_factory.mktemp("data")
    settings = Settings(data_dir=data_dir, redis_url="redis://127.0.0.1:1/0")
    upgrade(settings.database_url)
    with TestClient(create_app(settings), base_url="http://localhost:7860", raise_server_exceptions=False) as client:
        yield client


def test_pages_rest_and_trackio_answer_side_by_side(whole: TestClient):
    assert "text/html" in whole.get("/").headers["content-type"]
    assert whole.get("/api/v1/health").json()["status"] == "ok"
    assert "text/html" in whole.get("/trackio/").headers["content-type"]


def test_unknown_paths_of_the_interface_do_not_reach_the_pages(whole: TestClient):
    assert_refusal(whole.get("/api/v1/nothing"), 404, "not_found")
    assert_refusal(whole.get("/media/nothing"), 404, "not_found")
    assert_refusal(whole.delete("/api/v1/runs"), 405, "method_not_allowed")


def test_pages_may_be_framed_by_this_server_only_and_load_nothing_foreign(whole: TestClient):
    for path in ("/", "/trackio/"):
        headers = whole.get(path).headers
        policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
        assert policy["frame-ancestors"] == "'self'"
        assert policy["default-src"] == "'self'"
        assert "http" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/", "/config", "/gradio_api/info", "/trackio/", "/trackio/version", "/media/x"])
def test_foreign_hosts_reach_nothing(whole: TestClient, path: str):
    assert_refusal(whole.get(path, headers={"host": "evil.example"}), 400, "unknown_host")


def test_another_site_can_neither_upload_to_nor_call_the_pages(whole: TestClient):
    evil = {"origin": "https://evil.example"}
    upload = whole.post("/gradio_api/upload", files={"files": ("a.txt", b"a")}, headers=evil)
    assert_refusal(upload, 403, "cross_site")
    assert_refusal(whole.post("/gradio_api/queue/join", json={}, headers=evil), 403, "cross_site")
    assert_refusal(whole.post("/trackio/api/get_all_projects", json={}, headers=evil), 403, "cross_site")


def test_trackio_shows_and_never_writes(whole: TestClient):
    assert whole.post("/trackio/api/get_all_projects", json={}).json() == {"data": []}
    for name in ("log", "bulk_log", "delete_run", "upload", "query_project", "force_sync"):
        assert_refusal(whole.post(f"/trackio/api/{name}", json={}), 403, "read_only")
    assert_refusal(whole.get("/trackio/oauth/logout"), 403, "read_only")
    assert_refusal(whole.delete("/trackio/"), 403, "read_only")


def test_a_run_waits_when_the_queue_is_away(whole: TestClient):
    answer = whole.post("/api/v1/runs", json={"model": {"path": "demo-color"}, "data": {"subset": "color"}})
    assert (answer.status_code, answer.json()["state"]) == (201, "queued"), answer.text
