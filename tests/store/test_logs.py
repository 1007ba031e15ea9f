"""Lists that grow are followed by the last id seen, or read from their end."""

from app.store import Store
from app.store.queries.logs import events, log_lines
from app.store.run_writes import add_event, add_log_lines, create_run
from training.config import RunConfig


def test_a_log_is_followed_and_read_from_its_end(store: Store, run_id: int, config: RunConfig):
    with store.write() as session:
        later = create_run(session, config)
        for each in (later, run_id):
            add_log_lines(session, each, 1, [f"{each}: {number}" for number in range(5)])
        add_log_lines(session, run_id, 2, ["again"])
        add_log_lines(session, run_id, 2, [])

    def read(**query: int) -> list[str]:
        with store.read() as session:
            return [line.text for line in log_lines(session, run_id, **query)]

    everything = [f"{run_id}: {number}" for number in range(5)] + ["again"]
    assert read() == everything
    assert read(limit=2) == everything[:2]
    with store.read() as session:
        lines = log_lines(session, run_id)
    assert [line.attempt for line in lines] == [1, 1, 1, 1, 1, 2]
    assert read(after=lines[1].id) == everything[2:]
    assert read(after=lines[-1].id) == []
    assert read(tail=True, limit=2) == everything[-2:]
    assert read(tail=True, limit=5, after=lines[3].id) == everything[4:]
    assert read(after=2**62) == []


def test_events_are_followed_and_read_from_their_end(store: Store, run_id: int):
    with store.write() as session:
        for number in range(4):
            add_event(session, run_id, level="warning", code="c", message=str(number), step=number)
    with store.read() as session:
        found = events(session, run_id)
        assert [(event.message, event.step) for event in found[1:]] == [("0", 0), ("1", 1), ("2", 2), ("3", 3)]
        assert events(session, run_id, after=found[2].id, limit=1) == [found[3]]
        assert events(session, run_id, tail=True, limit=2) == found[-2:]
        assert events(session, run_id + 1) == []
