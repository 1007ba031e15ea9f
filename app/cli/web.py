"""`vlmscope web`: the dashboard and the REST API."""

import argparse
from typing import Any

from app.cli.options import add_address, add_data_dir, settings_of
from app.listening import address, listen
from app.settings import require_redis

_STOP_SECONDS = 3


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("web", description="Serve the dashboard and the REST API.")
    add_data_dir(parser)
    add_address(parser)


def run(args: argparse.Namespace) -> int:
    settings = settings_of(args)
    require_redis(settings)
    socket = listen(settings.host, settings.port)  # before the imports: a taken port is told at once

    import uvicorn

    from app.store import migrate
    from app.web import create_app

    migrate.upgrade(settings.database_url)
    print(f"dashboard: {address(settings.host, settings.port)}", flush=True)
    config = uvicorn.Config(
        create_app(settings), access_log=False, server_header=False, timeout_graceful_shutdown=_STOP_SECONDS
    )
    uvicorn.Server(config).run(sockets=[socket])
    return 0
