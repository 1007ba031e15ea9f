r"""What a completion says its answer is.

The reading, for every reward that judges an answer:
- reasoning never counts: nothing up to the last `</think>`, nor what follows a `<think>` that is not closed;
- the last whole answer block counts, so a second one replaces the first and hedging wins nothing;
- an answer block that is opened and never closed was cut before its end: there is no answer;
- an empty completion has no answer, which is wrong (0), not unscored.
"""

import re
import unicodedata

_OPEN, _CLOSE = "<answer>", "</answer>"
_BOXED = "\\boxed{"
# full-width forms and the minus sign; NFKC would also make 5² a 52
_PLAIN = {0xFF01 + offset: 0x21 + offset for offset in range(94)} | {0x3000: " ", 0x2212: "-", 0x2044: "/"}


def read_answer(completion: str) -> str | None:
    """The last answer block, else the last boxed value, else the last line that is not empty; None without any."""
    text = without_reasoning(completion)
    found = _tagged(text) if _OPEN in text else _boxed(text) if _BOXED in text else _last_line(text)
    return found or None


def read_text(completion: str) -> str:
    """The last answer block, else all of the completion, reasoning left out."""
    text = without_reasoning(completion)
    return _tagged(text) if _OPEN in text else text.strip()


def without_reasoning(completion: str) -> str:
    """What stands after the last `</think>` (some chat templates open the block themselves) and is not reasoning."""
    return completion.rpartition("</think>")[2].partition("<think>")[0]


def gold_texts(gold: object) -> list[str]:
    """The accepted answers of a row: one, or a list of them; read like completions, as published data has tags too.

    Empty when the gold answer is missing or cannot be read, so that nothing can be scored against it.
    """
    items = gold if isinstance(gold, list | tuple) else [gold]
    texts = (read_answer(str(item)) for item in items if item is not None and not isinstance(item, dict | list))
    return [text for text in texts if text]


def plain(text: str) -> str:
    """One form of width, minus sign, accents and white space."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text).translate(_PLAIN)
    return " ".join(text.split())


def _tagged(text: str) -> str:
    end = text.rfind(_CLOSE)
    start = text.rfind(_OPEN, 0, max(end, 0))
    return text[start + len(_OPEN) : end].strip() if start >= 0 else ""


def _boxed(text: str) -> str:
    start = text.rfind(_BOXED) + len(_BOXED)
    depth = 1
    for brace in re.finditer(r"[{}]", text[start:]):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return text[start : start + brace.start()].strip()
    return ""


def _last_line(text: str) -> str:
    return text.rstrip().rpartition("\n")[2].strip()
