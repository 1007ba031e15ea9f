"""Rewards for answers out of a few: the letter of a multiple choice, yes or no."""

import re
import string
from collections.abc import Mapping, Sequence

from training.rewards.answers import gold_texts, plain, read_answer
from training.rewards.types import Scored

_LETTER = re.compile(r"\(?([A-Za-z])\)?[.:,)]?")
_MARKED = re.compile(r"(?:\(([A-Z])\)[.:]?|([A-Z])[).:])\s+(.+)")
_ANOTHER_MARK = re.compile(r"\(([A-Z])\)|(?<!\w)([A-Z])[).:](?:\s|$)")
_ALONE = re.compile(r"(?<![\w'’])([A-Z])(?![\w'’])")
# the article and the pronoun: "A dog", "I see"; not the A of "A and B" and "A is right"
_ARTICLE = re.compile(r"(?<![\w'’])[AI](?= (?!(?:and|or|is)\b)[a-z])")
_OR = re.compile(r"(?:and|or|/|&|,)\s*\(?([A-Z])\b")
_YES_NO = re.compile(r"\b(yes|no)\b")


def choice(
    completions: Sequence[str],
    answer: Sequence[object],
    options: Sequence[object] | None = None,
    choices: Sequence[object] | None = None,
) -> list[Scored]:
    """1 when the answer names the right letter, as B, (B), B. or B: text, or is the right option's text.

    A column `options` or `choices` with the row's list makes the texts known.  Two letters are wrong.
    """
    rows = options or choices or [None] * len(completions)
    return [_choice(*row) for row in zip(completions, answer, rows, strict=True)]


def yes_no(completions: Sequence[str], answer: Sequence[object]) -> list[Scored]:
    """1 when the answer says the gold one of yes and no as a whole word, and not both; without either it is wrong.

    A row whose gold answer is neither, nor a boolean, is unscored.
    """
    return [_yes_no(text, gold) for text, gold in zip(completions, answer, strict=True)]


def _choice(completion: str, gold: object, options: object) -> Scored:
    texts = _option_texts(options)
    wanted = [letters for text in gold_texts(gold) if len(letters := _letters(text, texts)) == 1]
    given = _letters(read_answer(completion) or "", texts)
    shown = " ".join(sorted(given)) or None
    return Scored(float(given in wanted) if wanted else None, shown)


def _letters(text: str, options: Mapping[str, str]) -> set[str]:
    """The letters that an answer names."""
    text = plain(text)
    if single := _LETTER.fullmatch(text):
        return {single[1].upper()}
    named = {letter for letter, option in options.items() if option == _folded(text)}
    if named:
        return named
    if marked := _MARKED.match(text):
        rest = marked[3]
        others = {match[1] or match[2] for match in _ANOTHER_MARK.finditer(rest)} | set(_OR.findall(rest))
        others |= {letter for letter, option in options.items() if option == _folded(rest)}
        return {marked[1] or marked[2], *others}
    return set(_ALONE.findall(_ARTICLE.sub("", text)))


def _option_texts(options: object) -> dict[str, str]:
    """Letter to text, of a list in order or of a mapping; texts may begin with their letter."""
    match options:
        case Mapping():
            items = [(str(letter).strip().upper(), str(text)) for letter, text in options.items()]
        case list() | tuple():
            items = list(zip(string.ascii_uppercase, map(str, options), strict=False))
        case _:
            return {}
    texts = {}
    for letter, text in items:
        marked = _MARKED.match(plain(text))
        own = marked is not None and letter in (marked[1], marked[2])
        texts[letter] = _folded(marked[3] if marked and own else text)
    return texts


def _folded(text: str) -> str:
    return plain(text).casefold().rstrip(".")


def _yes_no(completion: str, gold: object) -> Scored:
    texts = ["yes" if gold else "no"] if isinstance(gold, bool) else gold_texts(gold)
    wanted = [said for text in texts if len(said := _said(text)) == 1]
    given = _said(read_answer(completion) or "")
    return Scored(float(given in wanted) if wanted else None, " ".join(sorted(given)) or None)


def _said(text: str) -> set[str]:
    return set(_YES_NO.findall(plain(text).casefold()))
