"""Rewards for the form of a completion, whatever its answer; a completion that was cut has not the form."""

import re
from collections.abc import Sequence

from training.rewards.answers import read_answer, without_reasoning
from training.rewards.types import Scored

_TAG = re.compile(r"</?(?:think|answer)>")
_ANSWER = ["<answer>", "</answer>"]
_THINK = ["<think>", "</think>"]


def format_answer(completions: Sequence[str]) -> list[Scored]:
    """1 when the whole completion is one <answer>...</answer> that is not empty, only white space around it."""
    return [_form(text, _ANSWER) for text in completions]


def format_think_answer(completions: Sequence[str]) -> list[Scored]:
    """1 when the whole completion is one <think>...</think> and then one <answer>...</answer> that is not empty."""
    return [_form(text, _THINK + _ANSWER) for text in completions]


def format_boxed(completions: Sequence[str]) -> list[Scored]:
    r"""1 when the completion is one <think>...</think> followed by text with a \boxed{...} that is not empty."""
    return [_boxed(text) for text in completions]


def _form(completion: str, tags: list[str]) -> Scored:
    """The tags stand once each, in order, with text inside the last block and white space outside of blocks."""
    pieces = _TAG.split(completion)
    outside, answer = pieces[0::2], pieces[-2:-1]
    if _TAG.findall(completion) != tags or any(map(str.strip, outside)) or not answer[0].strip():
        return Scored(0.0)
    return Scored(1.0, answer[0].strip())


def _boxed(completion: str) -> Scored:
    before, _, rest = completion.partition("<think>")
    if _TAG.findall(completion) != _THINK or before.strip() or "\\boxed{" not in without_reasoning(rest):
        return Scored(0.0)
    value = read_answer(completion)
    return Scored(float(value is not None), value)
