"""A table as prompts: the dataset that trainer, evaluation and preflight read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from training.config import DataConfig
from training.datasets.columns import json_columns
from training.datasets.faults import DataFault
from training.datasets.image_cache import ImageCache
from training.datasets.sample import Sample, sample_key
from training.datasets.table import Table
from training.datasets.template import build_messages, template_columns
from training.errors import DatasetError
from training.images import SourceImage, is_inline, locate, read_image


@dataclass(frozen=True)
class PromptDataset:
    """Samples of a table.  Raises DataFault, at a row's first use, for a row that cannot become a prompt."""

    table: Table
    config: DataConfig
    _images: ImageCache = field(default_factory=ImageCache, repr=False, compare=False)

    @property
    def name(self) -> str:
        return self.table.name

    @property
    def column_names(self) -> tuple[str, ...]:
        return self.table.column_names

    def __len__(self) -> int:
        rows = len(self.table.rows)
        return rows if self.config.limit is None else min(rows, self.config.limit)

    def __getitem__(self, index: int, /) -> Sample:
        if not 0 <= index < len(self):
            raise IndexError(f"row {index} of {len(self)}")
        row = self._row(index)
        columns = json_columns(row, without=self.config.image_column)
        images = tuple(self._image(value, index) for value in self._image_values(row))
        messages = build_messages(self.config, columns, len(images), row=index)
        answer = columns["answer"] = columns.get(self.config.answer_column)
        return Sample(index, sample_key(messages, images, answer), messages, images, columns)

    @property
    def names_files(self) -> bool:
        """Whether rows may name image files; otherwise nothing can be known without reading the images."""
        return self.config.image_column not in self.table.binary_columns

    def check_columns(self) -> None:
        """Raise DataFault when there are no rows, or a column that the configuration names is in none of them."""
        if not len(self):
            raise DataFault(f"{self.name} has no rows; add some", field="data.source")
        for name, where in self._mapped():
            if name not in self.column_names:
                raise DataFault(
                    f"{self.name} has no column {name!r}; it has {', '.join(self.column_names) or 'none'}", field=where
                )

    def check_row(self, index: int) -> None:
        """Raise DataFault when a row lacks a column or one of its image files does not exist; reads no image."""
        for value in self._image_values(self._row(index)):
            path = value.get("path") if isinstance(value, Mapping) and not value.get("bytes") else value
            if isinstance(path, str) and not is_inline(path):
                try:
                    locate(path, root=self.table.root, where=self._where(index), folder=self.table.folder)
                except DatasetError as error:
                    raise self._image_fault(error, index) from error

    def _mapped(self) -> list[tuple[str, str]]:
        mapped = [(name, "data.prompt") for name in template_columns(self.config.prompt)]
        if self.config.image_column:
            mapped.append((self.config.image_column, "data.image_column"))
        return [*mapped, (self.config.answer_column, "data.answer_column")]

    def _row(self, index: int) -> Mapping[str, Any]:
        row = self.table.rows[index]
        for name, where in self._mapped():
            if name not in row:
                raise DataFault(
                    f"row {index} of {self.name} has no column {name!r}; add it to the row or remove the row",
                    field=where,
                    row=index,
                )
        return row

    def _image_values(self, row: Mapping[str, Any]) -> list[Any]:
        """The images of a row: one, a list, or none (None, an empty text or list)."""
        value = row[self.config.image_column] if self.config.image_column else None
        if isinstance(value, list | tuple):
            return list(value)
        return [] if value is None or value == "" else [value]

    def _image(self, value: Any, index: int) -> SourceImage:
        try:
            if isinstance(value, str) and not is_inline(value):
                return self._images.get(value, lambda: self._read(value, index))
            return self._read(value, index)
        except DatasetError as error:
            raise self._image_fault(error, index) from error

    def _read(self, value: Any, index: int) -> SourceImage:
        return read_image(value, root=self.table.root, where=self._where(index), folder=self.table.folder)

    def _where(self, index: int) -> str:
        return f"row {index}, column {self.config.image_column!r}"

    def _image_fault(self, error: DatasetError, index: int) -> DataFault:
        return DataFault(str(error), field="data.image_column", row=index)
