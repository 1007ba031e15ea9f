"""One line that is rewritten on a terminal, and lines now and then in a log."""

import io

from app.up.console import Console


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Closed(io.StringIO):
    def write(self, _: str) -> int:
        raise OSError(5, "Input/output error")


def screen(text: str) -> list[str]:
    """What a terminal shows: a carriage return and an erase begin the line anew."""
    return [line.split("\r\x1b[K")[-1] for line in text.split("\n")]


def test_terminal_shows_one_progress_line_below_the_messages() -> None:
    console = Console(stream := Terminal())
    console.say("started")
    console.progress("step 1")
    console.progress("step 2")
    console.say("web ended")
    console.progress("step 3")
    assert screen(stream.getvalue()) == ["started", "web ended", "step 3"]
    console.end_progress("finished")
    console.say("stopped")
    assert screen(stream.getvalue()) == ["started", "web ended", "finished", "stopped", ""]


def test_log_gets_a_line_at_most_every_few_seconds_and_no_control_characters() -> None:
    console = Console(stream := io.StringIO(), every_seconds=60)
    for step in range(5):
        console.progress(f"step {step}")
    console.say("web ended")
    console.end_progress("finished")
    assert stream.getvalue() == "step 0\nweb ended\nfinished\n"


def test_log_does_not_repeat_a_line_that_says_nothing_new() -> None:
    console = Console(stream := io.StringIO(), every_seconds=0)
    for line in ("queued", "queued", "step 1", "step 1"):
        console.progress(line)
    assert stream.getvalue() == "queued\nstep 1\n"


def test_closed_terminal_stops_nothing() -> None:
    console = Console(Closed())
    console.say("stopping")
    console.end_progress("finished")
