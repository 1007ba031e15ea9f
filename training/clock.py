"""Where the time of a step went."""

import time


class Clock:
    """Wall seconds by phase of a step, from its construction on."""

    def __init__(self) -> None:
        self._start = self._last = time.perf_counter()
        self._laps: dict[str, float] = {}

    def lap(self, name: str) -> None:
        """The time since the last lap was spent on `name`."""
        now = time.perf_counter()
        self._laps[f"time/{name}"] = self._laps.get(f"time/{name}", 0.0) + now - self._last
        self._last = now

    def metrics(self, *, num_tokens: int) -> dict[str, float]:
        """time/{phase}, step_time in seconds, and tokens_per_second of the `num_tokens` of the step."""
        seconds = self._last - self._start
        return self._laps | {"step_time": seconds, "tokens_per_second": num_tokens / seconds}
