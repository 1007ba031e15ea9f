"""Following the demo run: pace, progress line, final numbers."""

import json

import pytest

from app.up.demo import Pace, progress_line
from app.up.summary import Summary, mean, values

RUN = {"id": "7", "state": "running", "phase": "training", "step": 42, "max_steps": 150, "reward": 0.6249}


def test_progress_line_names_run_phase_steps_reward_and_time_left() -> None:
    assert progress_line(RUN, 65.4) == "run 7  running  training  step 42/150  reward 0.625  about 1:05 left"


def test_progress_line_says_only_what_is_known() -> None:
    waiting = {**RUN, "state": "queued", "phase": None, "step": 0, "reward": None}
    assert progress_line(waiting, None) == "run 7  queued  step 0/150"


def test_progress_line_of_an_ended_run_has_neither_phase_nor_time_left() -> None:
    assert progress_line({**RUN, "state": "succeeded"}, 3.0) == "run 7  succeeded  step 42/150  reward 0.625"


def test_time_left_follows_from_the_steps_since_the_first_one_seen() -> None:
    pace = Pace()
    assert pace.remaining(0, 100, now=10.0) is None
    assert pace.remaining(20, 100, now=50.0) is None
    assert pace.remaining(40, 100, now=60.0) == 30.0  # 20 steps in 10 s, 60 to go
    assert pace.remaining(100, 100, now=90.0) is None


def test_time_left_starts_anew_when_a_run_resumes_from_an_earlier_step() -> None:
    pace = Pace()
    pace.remaining(50, 100, now=0.0)
    assert pace.remaining(40, 100, now=10.0) is None
    assert pace.remaining(45, 100, now=20.0) == 110.0


def test_means_are_of_steps_in_order() -> None:
    assert values([(3, 0.5), (1, 0.1), (2, 0.2)]) == [0.1, 0.2, 0.5]
    assert mean([0.25, 0.5]) == 0.375
    assert mean([1 / 3]) == 0.3333
    assert mean([]) is None


def test_summary_is_one_json_line_with_the_agreed_keys() -> None:
    line = Summary("7", "succeeded", 150, 0.4, 0.9, 0.7, None, 9600, 800, 92.5).json()
    assert "\n" not in line
    assert list(json.loads(line)) == [
        "run", "state", "steps", "reward_first", "reward_last", "accuracy_before", "accuracy_after", "completions",
        "images", "seconds",
    ]  # fmt: skip
    assert json.loads(line)["accuracy_after"] is None


def test_summary_with_a_number_that_json_lacks_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        Summary("7", "succeeded", 1, float("nan"), 0, 0, 0, 1, 1, 1).json()
