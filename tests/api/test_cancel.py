"""Cancelling: at once while a run waits, by request while it runs, refused when it has ended."""

from fastapi.testclient import TestClient

from app.runs import Services
from app.store.run_writes import Owner, claim, started
from tests.api.refusals import assert_refusal
from training.config import RunConfig


def test_a_waiting_run_is_cancelled_at_once(client: TestClient, services: Services, config: RunConfig):
    run_id = services.runs.launch(config)
    answer = client.post(f"/api/v1/runs/{run_id}/cancel")
    assert (answer.status_code, answer.json()) == (202, {"id": str(run_id), "state": "cancelled"})


def test_a_running_run_is_asked_to_stop_and_may_be_asked_again(
    client: TestClient, services: Services, config: RunConfig
):
    run_id = services.runs.launch(config)
    with services.store.write() as session:
        claim(session, run_id, owner=Owner("w", "h", 1, 1.0, "b"), lease_seconds=60)
        started(session, run_id, 1)
    for _ in range(2):
        answer = client.post(f"/api/v1/runs/{run_id}/cancel")
        assert (answer.status_code, answer.json()["state"]) == (202, "cancelling")


def test_a_run_that_has_ended_is_left_as_it_is(client: TestClient, run_id: int):
    error = assert_refusal(client.post(f"/api/v1/runs/{run_id}/cancel"), 409, "already_ended")
    assert "succeeded" in error["message"]
    assert client.get(f"/api/v1/runs/{run_id}").json()["state"] == "succeeded"
