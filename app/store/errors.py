"""The exceptions that the store raises on purpose."""

from training.errors import VlmscopeError


class StaleAttempt(VlmscopeError, RuntimeError):
    """A write for an attempt that does not hold the run any more; whoever gets it stops without another write."""

    def __init__(self, run_id: int, attempt: int) -> None:
        super().__init__(
            f"attempt {attempt} of run {run_id} does not hold the run any more: another attempt took it, or it has "
            f"ended; nothing was stored"
        )


class IllegalMove(VlmscopeError, ValueError):
    """A move between states that the table of legal moves does not have."""


class BadCursor(VlmscopeError, ValueError):
    """A page cursor that this list did not hand out."""


class MediaError(VlmscopeError, ValueError):
    """An image file that is missing, or whose bytes are not those that its name promises."""


class DatabaseUnusable(VlmscopeError, RuntimeError):
    """A database that this version cannot or must not open; the message says what to do."""
