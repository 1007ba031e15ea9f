"""Submitting and following the demo run while the web server comes and goes."""

import io
import time
from dataclasses import replace
from typing import Any

import httpx
import pytest

from app.up import demo as demo_module
from app.up.client import Client
from app.up.console import Console
from app.up.demo import Demo, LostContact
from app.up.summary import Summary
from training.config import RunConfig


class FakeServer(Client):
    """Answers as the REST client does, with one run that takes a step a look."""

    def __init__(self, *, unfinished: str | None = None) -> None:
        self.waiting = unfinished
        self.submitted: list[tuple[str, str]] = []
        self.step = -1
        self.down = 0

    def unfinished(self, *, project: str, name: str) -> str | None:
        assert (project, name) == ("default", "colours")
        return self.waiting

    def submit(self, config: RunConfig, *, key: str) -> str:
        self.submitted.append((config.name, key))
        if self.down > 0:  # the run was stored, and the answer was lost
            self.down -= 1
            raise httpx.ReadTimeout("no answer")
        return "7"

    def run(self, run_id: str) -> dict[str, Any]:
        if self.down > 0:
            self.down -= 1
            raise httpx.ConnectError("connection refused")
        self.step += 1
        state = ["queued", "running", "running", "succeeded"][self.step]
        return {
            "id": run_id, "state": state, "phase": "training", "step": self.step, "max_steps": 3, "reward": 0.5,
            "reason": "all steps done" if state == "succeeded" else None, "completions": 24, "images": 3,
        }  # fmt: skip

    def metric(self, run_id: str, name: str) -> list[tuple[int, float]]:
        assert run_id in ("7", self.waiting)
        return {
            "reward": [(step, step / 100) for step in range(1, 31)],
            "eval_rewards/accuracy/mean": [(0, 0.75), (15, 0.9), (30, 0.9375)],
        }[name]


@pytest.fixture(autouse=True)
def without_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_module, "_POLL_SECONDS", 0.0)


def follow(server: FakeServer) -> tuple[Demo, list[str]]:
    demo = Demo(
        server, RunConfig(name="colours"), Console(output := io.StringIO(), every_seconds=0), began=time.monotonic()
    )
    for _ in range(20):
        demo.advance()
    return demo, output.getvalue().splitlines()


def test_run_is_submitted_once_and_followed_to_its_end() -> None:
    demo, lines = follow(server := FakeServer())
    assert [name for name, _ in server.submitted] == ["colours"]
    assert demo.summary is not None
    assert demo.run_id == "7"
    assert lines[0] == "run 7 (colours) is queued"
    assert lines[1] == "run 7  queued  step 0/3  reward 0.500"
    assert lines[-2:] == [
        "run 7  succeeded  step 3/3  reward 0.500  all steps done",
        "reward 0.055 -> 0.255, held-out accuracy 0.750 -> 0.938, 24 completions of 3 images, 0 s",
    ]


def test_summary_has_the_means_of_the_first_and_last_ten_steps_and_of_the_first_and_last_evaluation() -> None:
    demo, _ = follow(FakeServer())
    assert demo.summary is not None
    assert replace(demo.summary, seconds=0.0) == Summary(
        "7", "succeeded", 3, 0.055, 0.255, 0.75, 0.9375, 24, 3, seconds=0.0
    )


def test_run_that_an_earlier_start_left_unfinished_goes_on_instead_of_a_second_one() -> None:
    demo, lines = follow(server := FakeServer(unfinished="4"))
    assert server.submitted == []
    assert demo.run_id == "4"
    assert lines[0] == "run 4 (colours) goes on"


def test_lost_answers_are_asked_again_with_the_same_key() -> None:
    server = FakeServer()
    server.down = 3
    demo, _ = follow(server)
    assert demo.summary is not None
    assert len(server.submitted) == 4
    assert len({key for _, key in server.submitted}) == 1


def test_server_that_stays_away_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_module, "_PATIENCE_SECONDS", 0.0)
    server = FakeServer()
    server.down = 100
    with pytest.raises(LostContact, match="has not answered for 0 s"):
        follow(server)
