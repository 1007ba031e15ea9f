"""Routes about the installation itself: workers, health, readiness."""

from datetime import datetime
from importlib.metadata import version

from fastapi import APIRouter
from pydantic import Field
from sqlalchemy.exc import SQLAlchemyError

from app.api.dependencies import ReadSession, ServicesDep
from app.api.documents import Document
from app.api.errors import ApiError
from app.store.queries import runs, workers

router = APIRouter(tags=["system"])


class DeviceDocument(Document):
    """A device that a worker may train on."""

    index: int
    kind: str = Field(examples=["cuda"])
    name: str
    memory_bytes: int | None


class WorkerDocument(Document):
    """A worker host and when it was last heard of."""

    name: str
    host: str
    pid: int
    registered_at: datetime
    last_seen: datetime
    versions: dict[str, str]
    devices: list[DeviceDocument]


class HealthDocument(Document):
    """The process answers."""

    status: str = Field(default="ok", examples=["ok"])
    version: str


@router.get("/workers", summary="Workers")
def list_workers(session: ReadSession) -> list[WorkerDocument]:
    """Worker hosts with their devices."""
    return [WorkerDocument.model_validate(row) for row in workers.list_workers(session)]


@router.get("/health", summary="Is the process alive?")
def health() -> HealthDocument:
    """Touches neither the database nor the queue."""
    return HealthDocument(status="ok", version=version("vlmscope"))


@router.get("/ready", summary="Can it serve?")
def ready(services: ServicesDep) -> HealthDocument:
    """503 while the database does not answer; a silent queue only delays the start of runs and does not count."""
    try:
        with services.store.read() as session:
            runs.run_exists(session, 1)
    except SQLAlchemyError as error:
        raise ApiError(503, "not_ready", "the database does not answer; see the server's log") from error
    return HealthDocument(status="ok", version=version("vlmscope"))
