r"""Numbers in answers: 7, -3, 1,000, .5, 1e3, 3/4, 1 1/2, \frac{3}{4}, 50 %, seven; exact, as fractions."""

import re
from dataclasses import dataclass
from fractions import Fraction

from training.rewards.answers import plain

_LONGEST = 100
_WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
)
_VALUES = {word: value for value, word in enumerate(_WORDS)}

_DECIMAL = r"(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?"
_FORMS = (
    r"(?P<sign>[+-]?)\s?(?:"
    r"(?:(?P<whole>\d+)\s)?(?P<top>\d+)\s?/\s?(?P<bottom>\d+)"
    r"|\\[dt]?frac\{(?P<latex_top>\d+)\}\{(?P<latex_bottom>\d+)\}"
    rf"|(?P<decimal>{_DECIMAL}))(?P<percent>\s?\\?%)?"
)
_WHOLE_TEXT = re.compile(_FORMS)
# a number in running text touches no letter, digit or other number: not the 12 of B12, not the 5 of 1,5
_IN_TEXT = re.compile(rf"(?<![\w.,/\\]){_FORMS}(?!\w|[.,/]\d)")
_WORD_IN_TEXT = re.compile(rf"\b(?:{'|'.join(_WORDS)})\b")


@dataclass(frozen=True, slots=True)
class Number:
    """A value, and whether it was written as a percentage (50 % has the value 1/2)."""

    value: Fraction
    percent: bool = False


def read_number(text: str) -> Number | None:
    """The number that the whole text is, or None.  Dollar signs of TeX and a closing period are left aside."""
    text = plain(text).strip("$ ").removesuffix(".")
    if text.casefold() in _VALUES:
        return Number(Fraction(_VALUES[text.casefold()]))
    return _number(_WHOLE_TEXT.fullmatch(text)) if len(text) <= _LONGEST else None


def numbers_in(text: str) -> list[Number]:
    """The distinct numbers that stand in a text; number words count only where there are no digits."""
    text = plain(text)
    numbers = [number for match in _IN_TEXT.finditer(text) if (number := _number(match))]
    words = () if numbers else _WORD_IN_TEXT.findall(text.casefold())
    return list(dict.fromkeys([*numbers, *(Number(Fraction(_VALUES[word])) for word in words)]))


def only_number(text: str) -> Number | None:
    """The number that a text is or holds; None when it holds none or several different ones."""
    whole = read_number(text)
    if whole is not None:
        return whole
    found = numbers_in(text)
    return found[0] if len(found) == 1 else None


def close(given: Number, gold: Number, *, absolute: float = 0.0, relative: float = 0.0) -> bool:
    """Whether two numbers differ by at most `absolute` or by `relative` of the gold one.

    Where only one of them is a percentage, 50 % equals both 1/2 and 50: questions ask for "how many percent".
    """
    pairs = [(given.value, gold.value)]
    if given.percent and not gold.percent:
        pairs.append((given.value * 100, gold.value))
    if gold.percent and not given.percent:
        pairs.append((given.value, gold.value * 100))
    return any(abs(a - b) <= max(Fraction(absolute), Fraction(relative) * abs(b)) for a, b in pairs)


def _number(match: re.Match[str] | None) -> Number | None:
    if match is None or len(match[0]) > _LONGEST:
        return None
    top, bottom = match["top"] or match["latex_top"], match["bottom"] or match["latex_bottom"]
    if match["decimal"]:
        value = Fraction(match["decimal"].replace(",", ""))
    elif int(bottom):
        value = Fraction(int(match["whole"] or 0)) + Fraction(int(top), int(bottom))
    else:
        return None
    percent = match["percent"] is not None
    return Number((-value if match["sign"] == "-" else value) / (100 if percent else 1), percent)
