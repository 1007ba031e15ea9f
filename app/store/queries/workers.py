"""Reads worker hosts and their devices."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.store import tables
from app.store.worker_writes import Device


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker host and when it was last heard of."""

    name: str
    host: str
    pid: int
    versions: dict[str, str]
    registered_at: datetime
    last_seen: datetime
    devices: list[Device]


def list_workers(session: Session) -> list[WorkerRow]:
    """Worker hosts, the one heard of last first."""
    devices: dict[str, list[Device]] = defaultdict(list)
    d, w = tables.Device, tables.Worker
    of_all = select(d.worker, d.index, d.kind, d.name, d.memory_bytes).order_by(d.worker, d.kind, d.index)
    for worker, index, kind, name, memory_bytes in session.execute(of_all):
        devices[worker].append(Device(index, kind, name, memory_bytes))
    columns = select(w.name, w.host, w.pid, w.versions, w.registered_at, w.last_seen)
    rows = session.execute(columns.order_by(w.last_seen.desc(), w.name))
    return [WorkerRow(*row, devices=devices[row.name]) for row in rows]
