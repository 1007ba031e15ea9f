"""The built-in dataset easy-vqa (MIT): 5,000 small PNGs of coloured shapes with 48,248 questions and answers."""

from functools import cache
from pathlib import Path

import easy_vqa

from training.datasets.faults import DataFault
from training.datasets.table import Table

NAME = "easy-vqa"
SPLITS = ("train", "test")
KINDS = ("color", "shape", "yesno")
COLUMNS = ("question", "answer", "image", "kind")

_COLORS = frozenset(("black", "blue", "brown", "gray", "green", "red", "teal", "yellow"))
_SHAPES = frozenset(("circle", "rectangle", "triangle"))


def open_easy_vqa(split: str, subset: str | None) -> Table:
    """Rows of one split, all kinds of question or one.  Images of the splits are disjoint."""
    if split not in SPLITS:
        raise DataFault(f"{NAME} has the splits {' and '.join(SPLITS)}, got {split!r}; choose one", field="data.split")
    if subset is not None and subset not in KINDS:
        raise DataFault(
            f"{NAME} has the subsets {', '.join(KINDS)}, got {subset!r}; choose one or leave it empty for all",
            field="data.subset",
        )
    folder = Path(easy_vqa.__file__).resolve().parent / "data" / split / "images"
    rows = [row for row in _rows(split) if subset in (None, row["kind"])]
    return Table(NAME, COLUMNS, rows, folder=folder, root=folder, built_in=True)


@cache
def _rows(split: str) -> tuple[dict[str, str], ...]:
    read = easy_vqa.get_train_questions if split == "train" else easy_vqa.get_test_questions
    return tuple(
        {"question": question, "answer": answer, "image": f"{image}.png", "kind": _kind(answer)}
        for question, answer, image in zip(*read(), strict=True)
    )


def _kind(answer: str) -> str:
    return "color" if answer in _COLORS else "shape" if answer in _SHAPES else "yesno"
