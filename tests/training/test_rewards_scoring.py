"""What reward functions are given, and how whatever they do ends as a value or an error per completion."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import torch

from tests.training.prompts import picture
from training.config import RewardConfig
from training.errors import ConfigError, RewardError
from training.records import RewardValue
from training.rewards import RewardSet, Scored, build_rewards

PROMPT = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "?"}]}]


def score(
    function: Callable[..., Any],
    completions: Sequence[str] = ("a", "b", "c"),
    *,
    columns: Sequence[Mapping[str, Any]] | None = None,
    prompts: Any = None,
    max_error_share: float = 1.0,
) -> list[RewardValue]:
    count = len(completions)
    rows = RewardSet({"mine": function}, [1.0], max_error_share=max_error_share).score(
        prompts=prompts or [PROMPT] * count,
        completions=completions,
        completion_ids=[[index] for index in range(count)],
        images=[[picture(0)]] * count,
        columns=columns or [{"answer": "a", "kind": "color"}] * count,
        step=7,
    )
    return [value for [value] in rows]


def test_a_function_gets_what_it_names():
    seen = {}

    def reward(kind, completions, step, completion_ids, prompts, images):
        seen.update(locals())
        return [1.0] * len(completions)

    score(reward)
    assert seen["completions"] == ["a", "b", "c"]
    assert seen["completion_ids"] == [[0], [1], [2]]
    assert seen["kind"] == ["color"] * 3
    assert seen["step"] == 7
    assert seen["prompts"] == [PROMPT] * 3
    assert [[image.size for image in row] for row in seen["images"]] == [[(64, 64)]] * 3


def test_a_function_with_open_arguments_gets_everything():
    seen = {}

    def reward(completions, **columns):
        seen.update(columns)
        return [None] * len(completions)

    score(reward)
    assert set(seen) == {"prompts", "completion_ids", "images", "step", "answer", "kind"}


def test_a_column_that_a_row_lacks_is_none_and_a_default_stands_when_no_row_has_it():
    def reward(completions, level, options=None):
        assert options is None
        return [0.0 if value is None else 1.0 for value in level]

    values = score(reward, ["a", "b"], columns=[{"level": 3}, {"answer": "x"}])
    assert [value.value for value in values] == [1.0, 0.0]


def test_a_column_that_does_not_exist_is_an_error_that_names_the_columns():
    def reward(completions, solution):
        return [1.0] * len(completions)

    [value, *_] = score(reward)
    assert value.value is None
    assert value.error == "asks for solution, and the dataset has the columns answer, kind; rename one"


def test_a_function_changes_only_copies():
    boxes = [[1, 2]]
    prompts = [[{"role": "user", "content": "?"}]]
    pixel = picture(0).open().getpixel((0, 0))

    def reward(prompts, completions, images, boxes):
        prompts[0][0]["content"] = "changed"
        completions.clear()
        boxes[0].append([3, 4])
        images[0][0].paste("white", (0, 0, 64, 64))
        return [1.0]

    assert score(reward, ["a"], columns=[{"boxes": boxes}], prompts=prompts)[0].value == 1.0
    assert boxes == [[1, 2]]
    assert prompts == [[{"role": "user", "content": "?"}]]
    assert picture(0).open().getpixel((0, 0)) == pixel


def test_completions_that_share_an_image_get_pictures_of_their_own():
    def reward(images):
        images[0][0].paste("white", (0, 0, 64, 64))
        return [float(sum(row[0].getpixel((0, 0)) == (255, 255, 255) for row in images))] * len(images)

    assert score(reward)[0].value == 1.0


@pytest.mark.parametrize(
    ("given", "value"),
    [
        (1, 1.0),
        (True, 1.0),
        (-2.5, -2.5),
        (None, None),
        (Scored(0.5, "x"), 0.5),
        (Scored(None), None),
        (np.float32(0.5), 0.5),
        (np.int64(2), 2.0),
        (np.array(0.25), 0.25),
        (torch.tensor(0.75), 0.75),
    ],
)
def test_numbers_of_any_kind_and_none_are_taken(given, value):
    [scored] = score(lambda: [given], ["a"])
    assert (scored.value, scored.error) == (value, None)


@pytest.mark.parametrize(
    "given", [math.nan, math.inf, -math.inf, 1e31, 10**400, "1.0", [1.0], object(), np.ones(2), torch.ones(2)]
)
def test_what_is_no_finite_number_is_an_error_of_that_completion_and_never_a_number(given):
    first, second = score(lambda: [given, 1.0], ["a", "b"])
    assert first.value is None
    assert first.error.startswith("expected a finite number or None, got ")
    assert (second.value, second.error) == (1.0, None)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ([1.0], "expected 3 values, got 1"),
        ([1.0] * 4, "expected 3 values, got 4"),
        (1.0, "expected a list of 3 values, got float"),
        ("111", "expected a list of 3 values, got str"),
        (None, "expected a list of 3 values, got NoneType"),
        ({"a": 1}, "expected a list of 3 values, got dict"),
    ],
)
def test_a_result_of_the_wrong_shape_is_an_error_of_every_completion(given, error):
    assert [(value.value, value.error) for value in score(lambda: given)] == [(None, error)] * 3


def test_arrays_are_lists():
    assert [value.value for value in score(lambda: np.array([1.0, 0.0, 0.5]))] == [1.0, 0.0, 0.5]


def test_an_exception_costs_only_the_completion_that_causes_it():
    def reward(completions):
        return [float(1 / (text != "b")) for text in completions]

    first, second, third = score(reward)
    assert (first.value, third.value) == (1.0, 1.0)
    assert second.value is None
    assert "ZeroDivisionError" in second.error
    assert "return [float(1 / (text" in second.error


def test_a_function_that_fails_for_most_of_a_step_stops_the_run_with_name_and_cause():
    def reward(completions):
        return [1.0 if text == "a" else math.nan for text in completions]

    with pytest.raises(RewardError, match=r"'mine' failed for 2 of 3 completions of step 7.*got nan"):
        score(reward, max_error_share=0.5)
    assert [value.value for value in score(reward, ["a", "b"], max_error_share=0.5)] == [1.0, None]


def test_unscored_completions_are_no_errors():
    assert [value.value for value in score(lambda: [None] * 3, max_error_share=0.0)] == [None] * 3


def test_values_stand_in_the_order_of_the_configuration():
    rewards = build_rewards([RewardConfig(name="format_answer", weight=0.2), RewardConfig(name="accuracy")])
    assert (rewards.names, rewards.weights) == (("format_answer", "accuracy"), (0.2, 1.0))
    [row, other] = rewards.score(
        prompts=[PROMPT] * 2,
        completions=["<answer>red</answer>", "red"],
        completion_ids=[[], []],
        images=[[], []],
        columns=[{"answer": "red"}, {"answer": "red"}],
        step=1,
    )
    assert [(value.name, value.value, value.parsed) for value in row] == [
        ("format_answer", 1.0, "red"),
        ("accuracy", 1.0, "red"),
    ]
    assert [value.value for value in other] == [0.0, 1.0]


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("acuracy", {}, ("did you mean 'accuracy'?", "format_answer", "yes_no")),
        ("zzz", {}, ("there is no reward 'zzz'", "exact_text")),
        ("accuracy", {"tolerance": 1}, ("'accuracy'", "tolerance", "none")),
        ("numeric", {"absolute_tolerance": -1}, ("absolute_tolerance", "greater than or equal to 0")),
        ("numeric", {"tolerance": 1}, ("its options are: absolute_tolerance, relative_tolerance",)),
    ],
)
def test_an_unknown_name_or_option_is_refused_with_the_known_ones(name, options, said):
    with pytest.raises(ConfigError) as caught:
        build_rewards([RewardConfig(name=name, options=options)])
    assert all(words in str(caught.value) for words in said)


def test_a_step_of_128_completions_takes_milliseconds():
    rewards = build_rewards([RewardConfig(name="format_answer"), RewardConfig(name="accuracy")])
    completions = ["<answer>red</answer>", "<answer>blue</answer>", "red", "<answer>teal"] * 32
    arguments = {
        "prompts": [PROMPT] * 128,
        "completions": completions,
        "completion_ids": [[1]] * 128,
        "images": [[picture(0)]] * 128,
        "columns": [{"answer": "red", "question": "?"}] * 128,
    }

    def seconds() -> float:
        start = time.process_time()
        rewards.score(**arguments, step=1)
        return time.process_time() - start

    assert min(seconds() for _ in range(20)) < 0.02
