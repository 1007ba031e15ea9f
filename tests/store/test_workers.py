"""Workers announce themselves with their devices and are heard of again."""

import time

from app.store import Store
from app.store.queries.workers import list_workers
from app.store.worker_writes import Device, beat, register_worker

CPU = Device(index=0, kind="cpu", name="2 cores", memory_bytes=2**33)
GPUS = [Device(index=n, kind="cuda", name="H200", memory_bytes=150 * 2**30) for n in (0, 1)]


def test_a_worker_shows_its_devices(store: Store):
    with store.write() as session:
        register_worker(session, "w1", "here", 7, {"vlmscope": "0.1.0"}, [*GPUS, CPU])
    with store.read() as session:
        (worker,) = list_workers(session)
    assert (worker.name, worker.host, worker.pid, worker.versions) == ("w1", "here", 7, {"vlmscope": "0.1.0"})
    assert worker.devices == [CPU, *GPUS]
    assert worker.last_seen == worker.registered_at


def test_a_worker_that_comes_back_replaces_its_row(store: Store):
    with store.write() as session:
        register_worker(session, "w1", "here", 7, {}, GPUS)
        register_worker(session, "w1", "there", 8, {}, [CPU])
    with store.read() as session:
        (worker,) = list_workers(session)
    assert (worker.host, worker.pid, worker.devices) == ("there", 8, [CPU])


def test_the_worker_heard_of_last_comes_first(store: Store):
    with store.write() as session:
        for name in ("w1", "w2", "w3"):
            register_worker(session, name, "here", 7, {}, [])
    time.sleep(0.01)
    with store.write() as session:
        beat(session, "w2")
        beat(session, "unknown")
    with store.read() as session:
        workers = list_workers(session)
    assert workers[0].name == "w2"
    assert workers[0].last_seen > workers[0].registered_at
    assert len(workers) == 3
