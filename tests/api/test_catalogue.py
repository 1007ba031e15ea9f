"""Presets, rewards, workers and health."""

import tomllib

from fastapi.testclient import TestClient

from app.runs import Services
from app.store.worker_writes import Device, register_worker
from training.config import RunConfig, load_toml
from training.presets import load_preset, preset_names


def test_presets_are_complete_configurations(client: TestClient):
    presets = client.get("/api/v1/presets").json()
    assert [preset["name"] for preset in presets] == list(preset_names())
    for preset in presets:
        expected = load_preset(preset["name"])
        assert RunConfig.model_validate(preset["config"]) == load_toml(preset["toml"]) == expected
        assert client.get(f"/api/v1/presets/{preset['name']}").json() == preset


def test_an_unknown_preset_is_answered_with_the_known_ones(client: TestClient):
    answer = client.get("/api/v1/presets/nothing")
    assert answer.status_code == 404
    assert "demo-color-grpo" in answer.json()["error"]["message"]


def test_a_preset_can_be_submitted_as_it_is(client: TestClient):
    toml = client.get("/api/v1/presets/demo-color-rloo").json()["toml"]
    assert tomllib.loads(toml)["algorithm"]["name"] == "rloo"
    answer = client.post("/api/v1/check", content=toml, headers={"content-type": "application/toml"})
    assert answer.json()["ok"] is True, answer.text


def test_rewards_show_the_schema_of_their_options(client: TestClient):
    rewards = {reward["name"]: reward for reward in client.get("/api/v1/rewards").json()}
    assert {"accuracy", "exact_text", "format_answer", "format_think_answer"} <= set(rewards)
    assert all(reward["summary"] and reward["range"] for reward in rewards.values())
    assert all(reward["options"]["type"] == "object" for reward in rewards.values())


def test_workers_show_their_devices(client: TestClient, services: Services):
    with services.store.write() as session:
        devices = [Device(index=0, kind="cpu", name="two cores", memory_bytes=2**33)]
        register_worker(session, "w1", host="h", pid=7, versions={"vlmscope": "0.1.0"}, devices=devices)
    (worker,) = client.get("/api/v1/workers").json()
    assert (worker["name"], worker["host"], worker["pid"]) == ("w1", "h", 7)
    assert worker["devices"] == [{"index": 0, "kind": "cpu", "name": "two cores", "memory_bytes": 2**33}]


def test_health_and_readiness(client: TestClient):
    for path in ("health", "ready"):
        answer = client.get(f"/api/v1/{path}")
        assert (answer.status_code, answer.json()["status"]) == (200, "ok")


def test_a_database_without_tables_is_not_ready(client: TestClient, services: Services):
    services.store.close()
    for file in services.settings.data_dir.glob("vlmscope.sqlite3*"):
        file.unlink()
    answer = client.get("/api/v1/ready")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "not_ready")
    assert client.get("/api/v1/health").status_code == 200
