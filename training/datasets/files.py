"""Local files as tables: JSONL, JSON, CSV and Parquet, one file or a folder with one file a split."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from training.config import DataConfig
from training.datasets.access import Access
from training.datasets.faults import DataFault
from training.datasets.parquet import ParquetRows
from training.datasets.table import Table

ENDINGS = (".jsonl", ".json", ".csv", ".parquet")
MAX_TEXT_BYTES = 256 * 1024 * 1024


def open_file(config: DataConfig, split: str, access: Access) -> Table:
    """Open the file that `config.source` names, or `SPLIT.jsonl` (or .json, .csv, .parquet) in that folder."""
    located = access.locate(config.source, field="data.source")
    if config.subset is not None:
        raise DataFault(
            f"{config.source} has no subsets, got {config.subset!r}; leave subset empty", field="data.subset"
        )
    path = _split_file(located.path, split)
    if located.root is not None and not path.resolve().is_relative_to(located.root):
        raise DataFault(f"{path} is a link out of {located.root}; put the file there", field="data.source")
    if path.suffix.lower() == ".parquet":
        rows = ParquetRows(path)
        return Table(path.name, rows.column_names, rows, path.parent, located.root, rows.binary_columns)
    rows = _READERS[path.suffix.lower()](path, _text(path))
    names = tuple(dict.fromkeys(name for row in rows for name in row))
    return Table(path.name, names, rows, path.parent, located.root)


def _split_file(path: Path, split: str) -> Path:
    if path.is_dir():
        splits = {file.stem: file for file in sorted(path.iterdir()) if file.suffix.lower() in ENDINGS}
        if not splits:
            raise DataFault(f"the folder {path} holds no {', '.join(ENDINGS)} file; name one", field="data.source")
        what = f"the folder {path}"
    else:
        if path.suffix.lower() not in ENDINGS:
            raise DataFault(
                f"expected a file that ends in {', '.join(ENDINGS)}, got {path.name}; convert it", field="data.source"
            )
        splits, what = {"train": path}, f"the single file {path.name}"
    if split not in splits:
        raise DataFault(
            f"{what} has the split {', '.join(splits)}, got {split!r}; choose one of them, or put the rows into "
            f"{split}.jsonl in a folder and name the folder as source",
            field="data.split",
        )
    return splits[split]


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_TEXT_BYTES:
            raise DataFault(
                f"{path.name} has more than {MAX_TEXT_BYTES:,} bytes, all of which would be held in memory; convert it "
                "to Parquet",
                field="data.source",
            )
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataFault(f"{path.name} is not UTF-8 (byte {error.start}); convert it", field="data.source") from error
    except OSError as error:
        raise DataFault(f"cannot read {path} ({error.strerror}); check its permissions", field="data.source") from error


def _jsonl_rows(path: Path, text: str) -> list[dict[str, Any]]:
    # not splitlines(): JSON strings may hold U+2028 and its like as they are
    lines = enumerate(text.split("\n"), start=1)
    return [_object(path, line, f"line {number}") for number, line in lines if line.strip()]


def _json_rows(path: Path, text: str) -> list[dict[str, Any]]:
    items = _parse(path, text, "the file")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise DataFault(f"{path.name}: expected a list of objects, one a row; or use JSONL", field="data.source")
    return items


def _csv_rows(path: Path, text: str) -> list[dict[str, Any]]:
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    rows = []
    try:
        for row in reader:
            if None in row or None in row.values():
                raise DataFault(
                    f"{path.name}: line {reader.line_num} has not the {len(reader.fieldnames or ())} fields of the "
                    "header; quote fields that hold commas",
                    field="data.source",
                )
            rows.append(row)
    except csv.Error as error:
        raise DataFault(
            f"{path.name}: line {reader.reader.line_num}: {error}; correct it", field="data.source"
        ) from error
    return rows


_READERS: dict[str, Callable[[Path, str], list[dict[str, Any]]]] = {
    ".jsonl": _jsonl_rows,
    ".json": _json_rows,
    ".csv": _csv_rows,
}


def _object(path: Path, text: str, where: str) -> dict[str, Any]:
    value = _parse(path, text, where)
    if not isinstance(value, dict):
        raise DataFault(
            f"{path.name}: {where}: expected an object, got {type(value).__name__}; write one object a line",
            field="data.source",
        )
    return value


def _parse(path: Path, text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataFault(f"{path.name}: {where} is not JSON ({error}); correct it", field="data.source") from error
