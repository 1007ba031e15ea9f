"""Builds the web application: REST, images, trackio and pages in one process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI
from starlette.middleware import Middleware

from app import ui
from app.api import API_PREFIX, mount_api
from app.api.guards import LOOPBACK_NAMES, BodyLimit, CrossSiteGuard, HostGuard
from app.api.headers import SecurityHeaders
from app.api.trackio_mount import mount_trackio
from app.queue import Queue
from app.runs import RunService, Services
from app.settings import Settings
from app.store import open_store
from training.datasets import Access

_LARGEST_BODY = 1_000_000


def open_services(settings: Settings) -> Services:
    """Open the store and the queue that routes and pages are built on."""
    store = open_store(settings.database_url, settings.data_dir)
    queue = Queue(settings.redis_url)
    runs = RunService(store, queue, Access(roots=settings.dataset_roots))
    return Services(store=store, queue=queue, runs=runs, settings=settings)


def create_app(settings: Settings) -> FastAPI:
    """The whole application; needs a migrated database."""
    services = open_services(settings)
    app = create_rest(services)
    mount_trackio(app, directory=settings.cache_dir.parent / "trackio")  # where training.run mirrors metrics to
    ui.mount(app, services)
    return app


def create_rest(services: Services) -> FastAPI:
    """The interface for programs alone, behind the guards of the pages as well; closes the store at its end."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        services.store.close()

    app = FastAPI(
        title="vlmscope",
        version=version("vlmscope"),
        summary="Launch and inspect reinforcement-learning runs of vision-language models.",
        openapi_url=f"{API_PREFIX}/openapi.json",
        docs_url=None,  # their scripts come from a CDN, which the content security policy keeps out
        redoc_url=None,
        separate_input_output_schemas=False,
        lifespan=lifespan,
        middleware=_guards(services.settings),
    )
    mount_api(app, services)
    return app


def _guards(settings: Settings) -> list[Middleware]:
    names = LOOPBACK_NAMES | {settings.host} | set(settings.allowed_hosts)
    return [
        Middleware(SecurityHeaders, api_prefixes=("/api/", "/media/")),
        Middleware(HostGuard, names=names),
        Middleware(CrossSiteGuard),
        Middleware(BodyLimit, prefix="/api/", limit=_LARGEST_BODY),
    ]
