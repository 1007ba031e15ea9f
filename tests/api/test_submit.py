"""Submitting runs: JSON and TOML, once and twice, and everything that is refused before it is stored."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from app.runs import Services
from training.config import RunConfig, dump_toml


def _document(config: RunConfig) -> dict:
    return config.model_dump(mode="json")


def _stored(client: TestClient) -> list[dict]:
    return client.get("/api/v1/runs").json()["items"]


def test_a_json_submission_is_queued_and_rings_the_queue(client: TestClient, services: Services, config: RunConfig):
    answer = client.post("/api/v1/runs", json=_document(config))
    assert answer.status_code == 201
    run_id = answer.json()["id"]
    assert answer.json() == {"id": run_id, "state": "queued"}
    assert answer.headers["location"] == f"/api/v1/runs/{run_id}"
    assert services.queue.rung == [int(run_id)]
    shown = client.get(answer.headers["location"]).json()
    assert RunConfig.model_validate(shown["config"]) == config
    assert (shown["name"], shown["state"], shown["step"], shown["attempt"]) == ("colours", "queued", 0, 0)


def test_toml_and_json_of_one_configuration_store_the_same(client: TestClient, config: RunConfig):
    for body, kind in ((dump_toml(config), "application/toml"), (config.model_dump_json(), "application/json")):
        answer = client.post("/api/v1/runs", content=body, headers={"content-type": f"{kind}; charset=utf-8"})
        assert answer.status_code == 201, answer.text
    configs = [client.get(f"/api/v1/runs/{run['id']}").json()["config"] for run in _stored(client)]
    assert configs == [_document(config), _document(config)]


def test_the_same_key_and_body_is_one_run(client: TestClient, services: Services, config: RunConfig):
    headers = {"Idempotency-Key": "a-click"}
    first = client.post("/api/v1/runs", json=_document(config), headers=headers)
    again = client.post("/api/v1/runs", json=_document(config), headers=headers)
    other = client.post("/api/v1/runs", json=_document(config), headers={"Idempotency-Key": "another"})
    assert [first.status_code, again.status_code, other.status_code] == [201, 200, 201]
    assert first.json()["id"] == again.json()["id"] != other.json()["id"]
    assert len(_stored(client)) == 2
    assert len(services.queue.rung) == 2


def test_the_same_key_with_another_body_is_refused(client: TestClient, config: RunConfig):
    headers = {"Idempotency-Key": "a-click"}
    client.post("/api/v1/runs", json=_document(config), headers=headers)
    answer = client.post("/api/v1/runs", json={**_document(config), "seed": 1}, headers=headers)
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "key_reused"
    assert len(_stored(client)) == 1


def test_sixteen_clients_with_one_key_make_one_run(client: TestClient, config: RunConfig):
    def submit(_: int) -> str:
        answer = client.post("/api/v1/runs", json=_document(config), headers={"Idempotency-Key": "race"})
        assert answer.status_code in (200, 201), answer.text
        return answer.json()["id"]

    with ThreadPoolExecutor(16) as pool:
        assert len(set(pool.map(submit, range(32)))) == 1
    assert len(_stored(client)) == 1


def test_a_queue_that_is_down_does_not_lose_the_run(client: TestClient, services: Services, config: RunConfig):
    services.queue.ring = lambda _: False
    assert client.post("/api/v1/runs", json=_document(config)).status_code == 201
    assert [run["state"] for run in _stored(client)] == ["queued"]


def _unknown_reward(document: dict, _: Path) -> None:
    document["rewards"] = [{"name": "acuracy"}]


def _missing_image(_: dict, dataset: Path) -> None:
    (dataset.parent / "green.png").unlink()


def _corrupt_image(_: dict, dataset: Path) -> None:
    image = dataset.parent / "green.png"
    image.write_bytes(image.read_bytes()[:40])


def _unmapped_column(document: dict, _: Path) -> None:
    document["data"]["answer_column"] = "label"


def _unknown_template_column(document: dict, _: Path) -> None:
    document["data"]["prompt"] = "{query}"


def _too_few_prompts(document: dict, _: Path) -> None:
    document["optimization"]["prompts_per_step"] = 4


def _one_generation(document: dict, _: Path) -> None:
    document["generation"]["num_generations"] = 1


def _unknown_model(document: dict, dataset: Path) -> None:
    document["model"]["path"] = str(dataset.parent / "nothing-here")


def _missing_dataset(document: dict, dataset: Path) -> None:
    document["data"]["source"] = str(dataset.parent / "gone.jsonl")


def _outside_the_roots(document: dict, dataset: Path) -> None:
    outside = dataset.parent.parent / "secret.jsonl"
    outside.write_bytes(dataset.read_bytes())
    document["data"]["source"] = str(outside)


@pytest.mark.parametrize(
    ("spoil", "field", "said"),
    [
        (_unknown_reward, "rewards", "accuracy"),
        (_missing_image, "image", "green.png"),
        (_corrupt_image, "image", "row 1"),
        (_unmapped_column, "data.answer_column", "answer"),
        (_unknown_template_column, "data.prompt", "question"),
        (_too_few_prompts, "optimization.prompts_per_step", "3"),
        (_one_generation, "generation.num_generations", "2"),
        (_unknown_model, "model.path", "nothing-here"),
        (_missing_dataset, "data.source", "gone.jsonl"),
        (_outside_the_roots, "data.source", "secret.jsonl"),
    ],
)
def test_what_cannot_work_is_refused_with_field_and_remedy_and_nothing_is_stored(
    client: TestClient,
    services: Services,
    config: RunConfig,
    dataset: Path,
    spoil: Callable[[dict, Path], None],
    field: str,
    said: str,
):
    document = _document(config)
    spoil(document, dataset)
    answer = client.post("/api/v1/runs", json=document)
    assert answer.status_code == 422, answer.text
    errors = [f for f in answer.json()["error"]["findings"] if f["level"] == "error"]
    named = [f for f in errors if field in f["field"] and said in f["message"]]
    assert named, errors
    assert field in answer.json()["error"]["message"]
    assert _stored(client) == []
    assert services.queue.rung == []


@pytest.mark.parametrize("spoil", [_missing_image, _corrupt_image])
def test_a_bad_image_is_named_by_its_row(
    client: TestClient, config: RunConfig, dataset: Path, spoil: Callable[[dict, Path], None]
):
    spoil({}, dataset)
    findings = client.post("/api/v1/runs", json=_document(config)).json()["error"]["findings"]
    assert [finding["row"] for finding in findings if finding["level"] == "error"] == [1]


def test_check_says_what_submit_would_and_stores_nothing(client: TestClient, config: RunConfig, dataset: Path):
    assert client.post("/api/v1/check", json=_document(config)).json()["ok"] is True
    _missing_image({}, dataset)
    checked = client.post("/api/v1/check", json=_document(config))
    refused = client.post("/api/v1/runs", json=_document(config))
    assert checked.status_code == 200
    assert checked.json()["ok"] is False
    assert checked.json()["findings"] == refused.json()["error"]["findings"]
    assert _stored(client) == []


def test_toml_that_cannot_be_read_is_refused_with_its_line(client: TestClient):
    body = 'name = "a"\nproject = "b"\nseed = = 3\n'
    answer = client.post("/api/v1/runs", content=body, headers={"content-type": "application/toml"})
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "not_toml"
    assert "line 3" in answer.json()["error"]["message"]


def test_toml_with_a_bad_field_is_refused_like_json(client: TestClient):
    toml = client.post(
        "/api/v1/runs", content="[generation]\nnum_generations = 1\n", headers={"content-type": "application/toml"}
    )
    plain = client.post("/api/v1/runs", json={"generation": {"num_generations": 1}})
    assert toml.status_code == plain.status_code == 422
    assert toml.json() == plain.json()


def test_json_of_the_openapi_example_is_accepted(client: TestClient):
    document = client.get("/api/v1/openapi.json").json()
    content = document["paths"]["/api/v1/runs"]["post"]["requestBody"]["content"]
    for kind in ("application/json", "application/toml"):
        example = content[kind]["example"]
        body = example if isinstance(example, str) else json.dumps(example)
        answer = client.post("/api/v1/runs", content=body, headers={"content-type": kind})
        assert answer.status_code == 201, answer.text
