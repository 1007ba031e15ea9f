"""Waits for something that another process does."""

import time
from collections.abc import Callable


def wait_for(condition: Callable[[], object], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {seconds} s"
        time.sleep(0.02)
