"""Rewards for answers that are a number."""

from collections.abc import Callable, Sequence

from pydantic import Field

from training.config.base import Section
from training.rewards.answers import gold_texts, read_answer
from training.rewards.numbers import Number, close, only_number
from training.rewards.types import RewardFunction, Scored


class NumericOptions(Section):
    """How far off a right number may be."""

    absolute_tolerance: float = Field(0.0, ge=0, description="Largest difference.")
    relative_tolerance: float = Field(1e-6, ge=0, lt=1, description="Largest difference as a share of the gold number.")


def numeric(options: NumericOptions) -> RewardFunction:
    """Builds the reward `numeric` with its tolerances."""

    def numeric(completions: Sequence[str], answer: Sequence[object]) -> list[Scored]:
        return _score(
            completions,
            answer,
            lambda given, gold: close(
                given, gold, absolute=options.absolute_tolerance, relative=options.relative_tolerance
            ),
        )

    return numeric


def counting(completions: Sequence[str], answer: Sequence[object]) -> list[Scored]:
    """1 when the one number in the answer is exactly the gold integer; several different numbers are wrong."""
    return _score(completions, answer, close, wanted=lambda gold: gold.value.denominator == 1)


def _score(
    completions: Sequence[str],
    answer: Sequence[object],
    same: Callable[[Number, Number], bool],
    *,
    wanted: Callable[[Number], bool] = lambda _: True,
) -> list[Scored]:
    """1 where the completion's number is one of the row's; unscored where the row has none that is wanted."""
    scored = []
    for completion, gold in zip(completions, answer, strict=True):
        right = [number for text in gold_texts(gold) if (number := only_number(text)) and wanted(number)]
        given = only_number(read_answer(completion) or "")
        value = float(given is not None and any(same(given, number) for number in right)) if right else None
        scored.append(Scored(value, None if given is None else _shown(given)))
    return scored


def _shown(number: Number) -> str:
    return str(number.value) if number.value.denominator == 1 else f"{float(number.value):.12g}"
