"""Which services make an installation, how each is started, and how one sees that it is ready."""

import sys
from collections.abc import Mapping

from app.settings import Settings
from app.up import broker
from app.up.child import Service
from app.up.client import Client
from app.up.tree import MARKER

# a worker that stops lets its run write a checkpoint first
_WORKER_STOP_SECONDS = 90.0


def stages(settings: Settings, client: Client) -> list[list[Service]]:
    """The embedded broker, where no other is set, then worker and web server."""
    first: list[list[Service]] = []
    if settings.redis_url is None:
        server = broker.configure(settings.data_dir / "broker")
        settings = settings.model_copy(update={"redis_url": server.url})
        first = [[Service("broker", server.argv, lambda _pid: server.answers(), environment={MARKER: mark(settings)})]]
    environment = _environment(settings)
    web = Service("web", _command("web"), lambda _pid: client.ready(), environment)
    worker = Service("worker", _command("worker"), client.has_worker, environment, stop_seconds=_WORKER_STOP_SECONDS)
    return [*first, [web, worker]]


def mark(settings: Settings) -> str:
    """Marks every process of this data directory's tree in its environment."""
    return str(settings.data_dir.resolve())


def _command(name: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "app.cli", name)


def _environment(settings: Settings) -> Mapping[str, str]:
    return {
        **settings.environment(),
        MARKER: mark(settings),
        "PYTHONUNBUFFERED": "1",
        # OpenMP threads that spin while they wait slow down everything else on a small machine
        "OMP_WAIT_POLICY": "PASSIVE",
    }
