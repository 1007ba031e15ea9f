"""Pages by keyset: a cursor names the last row seen, so a page deep in a list costs what the first one costs."""

import base64
import binascii
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from app.store.errors import BadCursor

Item = TypeVar("Item")
Source = TypeVar("Source")

LARGEST_INTEGER = 2**31 - 1
LARGEST_ROW_ID = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """Some rows of a list; `next` is the cursor of the page after, None on the last one."""

    items: list[Item]
    next: str | None


def encode(order: str, value: float, row_id: int) -> str:
    """The cursor after the row `row_id`, which has `value` in the column that the list is ordered by."""
    return base64.urlsafe_b64encode(json.dumps([order, value, row_id]).encode()).decode().rstrip("=")


def decode(
    cursor: str, order: str, *, kind: type[int] | type[float] = int, largest_id: int = LARGEST_ROW_ID
) -> tuple[float, int]:
    """The value, of the given kind, and the row id of a cursor.

    Raises BadCursor on anything that a list of this order did not hand out: PostgreSQL fails on numbers out of range.
    """
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        found, value, row_id = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, TypeError, RecursionError) as error:
        raise _not_ours() from error
    if found != order:
        raise BadCursor("this cursor belongs to a list in another order; begin at the first page of this one")
    if type(value) is not kind or type(row_id) is not int:
        raise _not_ours()
    in_range = abs(value) <= LARGEST_INTEGER if kind is int else math.isfinite(value)
    if not in_range or not 0 <= row_id <= largest_id:
        raise _not_ours()
    return value, row_id


def _not_ours() -> BadCursor:
    return BadCursor("expected the `next` of the page before; leave it out to begin at the first page")


def cut(rows: Sequence[Source], limit: int, cursor: Callable[[Source], str]) -> tuple[Sequence[Source], str | None]:
    """The first `limit` of at most `limit + 1` rows, and the cursor after them when there is one row more."""
    if len(rows) <= limit:
        return rows, None
    return rows[:limit], cursor(rows[limit - 1])
