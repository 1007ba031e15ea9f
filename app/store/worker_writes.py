"""Worker hosts announce themselves and are heard of again and again."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from sqlalchemy import delete, insert, update
from sqlalchemy.orm import Session

from app.store import tables
from app.store.clock import now
from app.store.tables import Worker
from app.store.upserts import insert_or_ignore


@dataclass(frozen=True, slots=True)
class Device:
    """Something that a worker can train on: `kind` is cpu or cuda."""

    index: int
    kind: str
    name: str
    memory_bytes: int | None


def register_worker(
    session: Session, name: str, host: str, pid: int, versions: Mapping[str, str], devices: Sequence[Device]
) -> None:
    """Announce a worker; one of the same name that was here before is replaced."""
    time = now(session)
    values = {"host": host, "pid": pid, "versions": dict(versions), "registered_at": time, "last_seen": time}
    insert_or_ignore(session, Worker, [{"name": name, **values}])
    session.execute(update(Worker).where(Worker.name == name).values(values))
    session.execute(delete(tables.Device).where(tables.Device.worker == name))
    if devices:
        session.execute(insert(tables.Device), [{"worker": name, **asdict(device)} for device in devices])


def beat(session: Session, name: str) -> None:
    """The worker lives."""
    session.execute(update(Worker).where(Worker.name == name).values(last_seen=now(session)))
