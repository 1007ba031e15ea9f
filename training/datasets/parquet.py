"""Rows of a Parquet file: row groups are read when a row of theirs is asked for, the newest few are kept."""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, overload

import pyarrow as pa
import pyarrow.parquet as pq

from training.datasets.faults import DataFault

MAX_GROUP_BYTES = 1024 * 1024 * 1024
_KEPT_GROUPS = 4


class ParquetRows(Sequence[dict[str, Any]]):
    """Random access to the rows.  Raises DataFault for a file that is damaged or unpacks to too much."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._file = pq.ParquetFile(path)
        except (pa.ArrowException, OSError) as error:
            raise self._damaged(error) from error
        metadata = self._file.metadata
        sizes = (metadata.row_group(index).num_rows for index in range(metadata.num_row_groups))
        self._starts = [0, *accumulate(sizes)]
        self._kept: OrderedDict[int, pa.Table] = OrderedDict()
        schema = self._file.schema_arrow
        self.column_names = tuple(schema.names)
        self.binary_columns = frozenset(column.name for column in schema if _holds_bytes(column.type))

    def __len__(self) -> int:
        return self._starts[-1]

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, index: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(f"row {index} of {len(self)}")
        group = bisect_right(self._starts, index) - 1
        return self._group(group).slice(index - self._starts[group], 1).to_pylist()[0]

    def _group(self, group: int) -> pa.Table:
        table = self._kept.get(group)
        if table is None:
            table = self._kept[group] = self._read(group)
            if len(self._kept) > _KEPT_GROUPS:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(group)
        return table

    def _read(self, group: int) -> pa.Table:
        # sizes in the footer are no guard: 152 KB there were seen to become 309 MB
        batches, size = [], 0
        try:
            for batch in self._file.iter_batches(batch_size=64, row_groups=[group]):
                batches.append(batch)
                size += batch.nbytes
                if size > MAX_GROUP_BYTES:
                    raise DataFault(
                        f"row group {group} of {self._path.name} unpacks to more than {MAX_GROUP_BYTES:,} bytes; "
                        "write the file with smaller row groups",
                        field="data.source",
                    )
        except (pa.ArrowException, OSError) as error:
            raise self._damaged(error) from error
        return pa.Table.from_batches(batches, schema=self._file.schema_arrow)

    def _damaged(self, error: Exception) -> DataFault:
        return DataFault(f"{self._path} is no readable Parquet file ({error}); write it again", field="data.source")


def _holds_bytes(kind: pa.DataType) -> bool:
    """Bytes, the `{"bytes", "path"}` of Hugging Face datasets, or lists of these."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _holds_bytes(kind.value_type)
    if pa.types.is_struct(kind):
        return any(_holds_bytes(part.type) for part in kind)
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
