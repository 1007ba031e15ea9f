"""Rows by index, wherever they come from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Table:
    """A named sequence of rows; their relative image paths start at `folder` and must stay inside `root`.

    `binary_columns` are known to hold bytes and no paths; `built_in` data is known to be whole.
    """

    name: str
    column_names: tuple[str, ...]
    rows: Sequence[Mapping[str, Any]]
    folder: Path
    root: Path | None
    binary_columns: frozenset[str] = frozenset()
    built_in: bool = False
