"""Ctrl-C, SIGTERM and a closed terminal as a count that the main loop looks at."""

import signal


class Interrupts:
    """Counts requests to stop: the first asks for a clean end, the second for an end at once.

    Handlers only count: an exception raised at any bytecode would leave half-started children behind.
    """

    def __init__(self) -> None:
        self.count = 0
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup asks to ignore it
                signal.signal(number, self._count_one)

    @property
    def stop(self) -> bool:
        return self.count > 0

    @property
    def at_once(self) -> bool:
        return self.count > 1

    def _count_one(self, *_: object) -> None:
        self.count += 1
