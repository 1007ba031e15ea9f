"""Mounts trackio's own dashboard under /trackio, for reading only."""

import logging
import os
from pathlib import Path

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.errors import ApiError, refusal

PREFIX = "/trackio"
_LOG = logging.getLogger(__name__)


class ReadOnly:
    """Lets through what shows metrics: files of the page, and the calls that read.

    trackio guards its writing calls with a token, but its uploads, SQL queries and logins have no place here.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        if scope["type"] == "lifespan" or _reads(scope.get("method", ""), path):
            await self.app(scope, receive, send)
            return
        error = ApiError(403, "read_only", "this mirror of the metrics is for reading; runs write to it by themselves")
        await refusal(error)(scope, receive, send)


def _reads(method: str, path: str) -> bool:
    if method in ("GET", "HEAD"):
        return not path.startswith(("/oauth", "/login", "/artifact_blob"))
    return method == "POST" and path.startswith("/api/get_")


def mount_trackio(app: FastAPI, *, directory: Path) -> bool:
    """Mount the dashboard and say whether it is there; without it everything else works."""
    os.environ["TRACKIO_DIR"] = str(directory)  # read when trackio is imported
    try:
        from trackio.server import build_starlette_app_only  # not in trackio's __all__: it may move
    except ImportError as error:
        _LOG.warning("no trackio dashboard under %s: %s", PREFIX, error)
        return False
    dashboard, _ = build_starlette_app_only()
    app.mount(PREFIX, ReadOnly(dashboard))
    return True
