"""What a check of a run says."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to know: an error refuses the run, a warning and an info do not."""

    level: Literal["error", "warning", "info"]
    field: str
    message: str
    row: int | None = None
