"""What a completion says its answer is, and when two answers are equal."""

import re
import unicodedata

_THINK = re.compile(r"<think>.*?(</think>|$)", re.DOTALL)
_TAG = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
_BOXED = re.compile(r"\\boxed\{([^{}]*)\}")
_NUMBER = re.compile(r"[+-]?(\d{1,3}(,\d{3})+|\d+)?(\.\d+)?")


def read_answer(completion: str) -> str | None:
    """The last answer tag, else the last boxed value, else the last line that is not empty; never the reasoning.

    None when nothing is left: an empty completion, or one that was cut in the middle of its reasoning.
    """
    outside = _THINK.sub("", completion)
    for pattern in (_TAG, _BOXED):
        found = pattern.findall(outside)
        if found:
            return found[-1].strip()
    if "<answer>" in outside:  # opened and never closed: cut before its end
        return None
    lines = [line.strip() for line in outside.splitlines() if line.strip()]
    return lines[-1] if lines else None


def normalized(text: str) -> str:
    """Case, width, white space and a closing period do not matter."""
    folded = unicodedata.normalize("NFKC", text).replace("\u2212", "-").casefold()
    return " ".join(folded.split()).rstrip(".")


def number(text: str) -> float | None:
    """The value of a text that is one number, thousands separators understood; None for any other text."""
    text = normalized(text)
    if not text or not any(c.isdigit() for c in text) or not _NUMBER.fullmatch(text):
        return None
    return float(text.replace(",", ""))


def same_answer(given: str, gold: str) -> bool:
    """Equal as numbers where both are numbers, else equal as normalized text."""
    left, right = number(given), number(gold)
    if left is not None and right is not None:
        return left == right
    return normalized(given) == normalized(gold)
