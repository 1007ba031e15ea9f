"""A table as prompts: the dataset that trainer, evaluation and preflight read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from training.config import DataConfig
from training.datasets.columns import json_columns
from training.datasets.faults import DataFault
from training.datasets.image_cache import ImageCache
from training.datasets.messages import place_images, read_messages
from training.datasets.sample import Sample, sample_key
from training.datasets.table import Table
from training.datasets.template import system_message, template_columns, user_message
from training.errors import DatasetError
from training.images import SourceImage, image_size, is_inline, locate, read_image

Messages = tuple[dict[str, Any], ...]
_DEFAULT_IMAGE_COLUMN = DataConfig.model_fields["image_column"].default


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
        columns = self._columns(row)
        images = tuple(self._image(value, index) for value in self._image_values(row))
        messages = self._messages(row, columns, len(images), index)
        answer = columns["answer"] = columns.get(self.config.answer_column)
        return Sample(index, sample_key(messages, images, answer), messages, images, columns)

    @property
    def image_column(self) -> str:
        """The configured column; `images` where the default `image` is asked for and only that one exists."""
        name = self.config.image_column
        plural = name == _DEFAULT_IMAGE_COLUMN and name not in self.column_names and "images" in self.column_names
        return "images" if plural else name

    @property
    def names_files(self) -> bool:
        """Whether rows may name image files; otherwise nothing can be known without reading the images."""
        return self.image_column not in self.table.binary_columns

    def check_columns(self) -> None:
        """Raise DataFault when there are no rows, or a column that the configuration names is in none of them."""
        if not len(self):
            raise DataFault(f"{self.name} has no rows; add some", field="data.source")
        for name, where in self._mapped():
            if name not in self.column_names:
                raise DataFault(
                    f"{self.name} has no column {name!r}; it has {', '.join(self.column_names) or 'none'}", field=where
                )

    def check_row(self, index: int) -> Messages:
        """The row's messages.

        Raises DataFault when it lacks a column, makes no prompt, or names an image that is not there; reads no image.
        """
        row = self._row(index)
        values = self._image_values(row)
        messages = self._messages(row, self._columns(row), len(values), index)
        for value in values:
            path = value.get("path") if isinstance(value, Mapping) and not value.get("bytes") else value
            if isinstance(path, str) and not is_inline(path):
                try:
                    locate(path, root=self.table.root, where=self._where(index), folder=self.table.folder)
                except DatasetError as error:
                    raise self._image_fault(error, index) from error
        return messages

    def image_sizes(self, index: int) -> list[tuple[int, int]]:
        """Width and height of a row's images, from their headers.  Raises DataFault as reading the row would."""
        where, root, folder = self._where(index), self.table.root, self.table.folder
        try:
            values = self._image_values(self._row(index))
            return [image_size(value, root=root, where=where, folder=folder) for value in values]
        except DatasetError as error:
            raise error if isinstance(error, DataFault) else self._image_fault(error, index) from error

    def _mapped(self) -> list[tuple[str, str]]:
        mapped = [(name, "data.prompt") for name in template_columns(self.config.prompt)]
        if self.config.messages_column:
            mapped = [(self.config.messages_column, "data.messages_column")]
        if self.image_column:
            mapped.append((self.image_column, "data.image_column"))
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

    def _columns(self, row: Mapping[str, Any]) -> dict[str, JsonValue]:
        return json_columns(row, without={self.image_column, self.config.messages_column})

    def _image_values(self, row: Mapping[str, Any]) -> list[Any]:
        """The images of a row: one, a list, or none (None, an empty text or list)."""
        value = row[self.image_column] if self.image_column else None
        values = value if isinstance(value, list | tuple) else [value]
        return [item for item in values if not _is_nothing(item)]

    def _messages(self, row: Mapping[str, Any], columns: Mapping[str, Any], images: int, index: int) -> Messages:
        config = self.config
        if config.messages_column:
            field, messages = (
                "data.messages_column",
                read_messages(row[config.messages_column], config.messages_column, row=index),
            )
        else:
            field, messages = "data.prompt", [user_message(config.prompt, columns, row=index)]
        if config.system_prompt is not None and messages[0]["role"] != "system":
            messages = [system_message(config.system_prompt), *messages]
        return place_images(messages, images, row=index, field=field)

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
        return f"row {index}, column {self.image_column!r}"

    def _image_fault(self, error: DatasetError, index: int) -> DataFault:
        return DataFault(str(error), field="data.image_column", row=index)


def _is_nothing(value: Any) -> bool:
    """What datasets hold where a row has no image."""
    match value:
        case None:
            return True
        case str():
            return not value
        case Mapping():
            return value.keys() <= {"bytes", "path"} and not any(value.values())
    return False
