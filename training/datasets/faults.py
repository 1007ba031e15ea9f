"""The error of everything that is wrong with data: it knows the configuration field and the row."""

from training.errors import DatasetError


class DataFault(DatasetError):
    """Data that cannot be used; `field` is the dotted configuration field to change, `row` the row's index."""

    def __init__(self, message: str, *, field: str, row: int | None = None) -> None:
        super().__init__(message)
        self.field = field
        self.row = row
