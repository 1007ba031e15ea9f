"""Rewards by rule: is the answer right, and does the completion have the asked form."""

import re
from collections.abc import Sequence

from training.rewards.answers import normalized, read_answer, same_answer
from training.rewards.types import Scored

_ANSWER = re.compile(r"\s*<answer>(?P<answer>.*?)</answer>\s*", re.DOTALL)
_THINK_ANSWER = re.compile(r"\s*<think>.*?</think>\s*<answer>(?P<answer>.*?)</answer>\s*", re.DOTALL)
_TAGS = re.compile(r"</?(?:think|answer)>")


def accuracy(completions: Sequence[str], answer: Sequence[object]) -> list[Scored]:
    """1 when the completion's answer equals the gold one, as a number or as text; unscored without a gold answer.

    The answer is read by `read_answer`; the gold answer may stand in an answer tag itself, as published datasets do.
    """
    return [_judge(text, gold) for text, gold in zip(completions, answer, strict=True)]


def _judge(completion: str, gold: object) -> Scored:
    wanted = None if gold is None else read_answer(str(gold))
    if wanted is None:
        return Scored(None)
    given = read_answer(completion)
    if given is None:
        return Scored(0.0)
    return Scored(float(same_answer(given, wanted)), given)


def exact_text(completions: Sequence[str], answer: Sequence[object]) -> list[Scored]:
    """1 when the whole completion equals the gold answer, case and surrounding white space aside."""
    return [
        Scored(None) if gold is None else Scored(float(normalized(text) == normalized(str(gold))), text.strip())
        for text, gold in zip(completions, answer, strict=True)
    ]


def format_answer(completions: Sequence[str]) -> list[Scored]:
    """1 when the whole completion is one <answer>...</answer>, nothing but white space around it."""
    return [_form(_ANSWER, text, tags=2) for text in completions]


def format_think_answer(completions: Sequence[str]) -> list[Scored]:
    """1 when the whole completion is one <think>...</think> followed by one <answer>...</answer>."""
    return [_form(_THINK_ANSWER, text, tags=4) for text in completions]


def _form(pattern: re.Pattern[str], completion: str, *, tags: int) -> Scored:
    match = pattern.fullmatch(completion)
    if match is None or len(_TAGS.findall(completion)) != tags:
        return Scored(0.0)
    return Scored(1.0, match["answer"].strip())
