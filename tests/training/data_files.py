"""A small folder of rows and images for tests of datasets and preflight."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.training.pictures import plain_picture

COLORS = ("red", "green", "blue", "black", "yellow")


def color_rows(folder: Path, count: int = len(COLORS)) -> list[dict[str, Any]]:
    """Rows with one image file each, named by its color."""
    rows = []
    for color in COLORS[:count]:
        (folder / f"{color}.png").write_bytes(plain_picture(color))
        rows.append({"question": f"Is it {color}?", "image": f"{color}.png", "answer": color})
    return rows


def write_jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)
