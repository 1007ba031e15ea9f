"""Waits for what other processes do."""

import time
from collections.abc import Callable


def until(condition: Callable[[], bool], *, seconds: float = 30.0) -> bool:
    """Whether the condition came true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
