"""What becomes of the lines that a training process prints and records."""

from collections.abc import Callable
from pathlib import Path

import pytest

from app.store.queries.logs import log_lines
from app.store.run_writes import claim
from tests.worker.child_program import record_of
from tests.worker.conftest import texts
from worker import tailing
from worker.identity import owner
from worker.tailing import OutputTail, RecordTail


@pytest.fixture
def printed(store, run_id, tmp_path: Path) -> Callable[..., list[str]]:
    """Appends to an output file, lets a tail store it, and returns the lines in the store."""
    file = tmp_path / "output.log"
    tail = OutputTail(store, run_id, 1, file)

    def append(data: bytes, *, final: bool = False) -> list[str]:
        with file.open("ab") as output:
            output.write(data)
        tail.pump(final=final)
        with store.read() as session:
            return [line.text for line in log_lines(session, run_id)]

    return append


def test_a_line_is_stored_when_it_is_whole_or_when_nothing_comes_after(printed):
    assert printed(b"one\ntw") == ["one"]
    assert printed(b"o\nthree") == ["one", "two"]
    assert printed(b"", final=True) == ["one", "two", "three"]


def test_of_a_progress_bar_the_last_state_is_stored(printed):
    assert printed(b" 10%\r 50%\r100%\r\nWindows line\r\n\n") == ["100%", "Windows line"]


def test_what_is_no_text_is_stored_all_the_same(printed):
    assert printed(b"caf\xe9\n") == ["caf\N{REPLACEMENT CHARACTER}"]


def test_more_output_than_one_chunk_is_stored_whole(printed, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tailing, "CHUNK", 16)
    lines = [f"line {number}" for number in range(20)]
    assert printed("\n".join(lines).encode(), final=True) == lines


def test_a_record_that_is_not_written_to_its_end_waits_for_its_end(store, run_id, tmp_path: Path):
    with store.write() as session:
        claim(session, run_id, owner=owner("w"), lease_seconds=60)
    (tmp_path / "records").mkdir()
    tail = RecordTail(store, run_id, 1, tmp_path)
    line = record_of(1).model_dump_json().encode() + b"\n"
    with (tmp_path / "records" / "attempt-0001.jsonl").open("ab", buffering=0) as file:
        file.write(line[:100])
        tail.pump()
        assert texts(store, run_id) == []
        file.write(line[100:])
        tail.pump()
    assert texts(store, run_id) == ["1/0/0", "1/0/1", "1/1/0", "1/1/1"]
    RecordTail(store, run_id, 1, tmp_path).pump()
    assert len(texts(store, run_id)) == 4
