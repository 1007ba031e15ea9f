"""Rewards that compare the answer as text."""

from collections.abc import Callable, Sequence

from training.rewards.answers import gold_texts, plain, read_answer, read_text
from training.rewards.edit_distance import similarity
from training.rewards.numbers import close, read_number
from training.rewards.types import Scored


def accuracy(completions: Sequence[str], answer: Sequence[object]) -> list[Scored]:
    """1 when the answer (tag, else boxed value, else last line) equals the gold one, as a number or as text."""
    return [_accuracy(text, gold) for text, gold in zip(completions, answer, strict=True)]


def exact_text(completions: Sequence[str], answer: Sequence[object]) -> list[Scored]:
    """1 when the answer tag, else the whole completion, equals the gold text, case and outer white space aside."""
    return _best(completions, answer, lambda given, gold: float(given == gold))


def fuzzy_text(completions: Sequence[str], answer: Sequence[object]) -> list[Scored]:
    """Levenshtein similarity of the answer tag, else the whole completion, to the gold text: 1 - distance / length."""
    return _best(completions, answer, similarity)


def same_answer(given: str, gold: str) -> bool:
    """Equal as text (case, width, white space and closing period aside) or as exact numbers."""
    if plain(given).casefold().rstrip(".") == plain(gold).casefold().rstrip("."):
        return True
    left = read_number(given)
    right = None if left is None else read_number(gold)
    return left is not None and right is not None and close(left, right)


def _accuracy(completion: str, gold: object) -> Scored:
    wanted, given = gold_texts(gold), read_answer(completion)
    if not wanted:
        return Scored(None, given)
    return Scored(float(given is not None and any(same_answer(given, item) for item in wanted)), given)


def _best(completions: Sequence[str], answer: Sequence[object], compare: Callable[[str, str], float]) -> list[Scored]:
    """The largest value over the accepted answers; an empty text is an answer of its own here."""
    scored = []
    for completion, gold in zip(completions, answer, strict=True):
        given = read_text(completion)
        items = gold if isinstance(gold, list | tuple) else [gold]
        wanted = [str(item).strip().casefold() for item in items if item is not None]
        value = max((compare(given.casefold(), item) for item in wanted), default=None)
        scored.append(Scored(value, given))
    return scored
