"""The REST interface: `/api/v1` and `/media`."""

from typing import Any

from fastapi import APIRouter, FastAPI

from app.api import catalogue_routes, media_routes, run_data_routes, run_routes, system_routes
from app.api.errors import ErrorDocument, install_errors
from app.api.fallback import answer_unknown_paths
from app.runs import Services

API_PREFIX = "/api/v1"
_REFUSALS: dict[int | str, dict[str, Any]] = {
    "default": {"model": ErrorDocument, "description": "Refused; the one shape of every refusal."}
}


def mount_api(app: FastAPI, services: Services) -> None:
    """Add every route of the interface and the one error shape."""
    app.state.services = services
    install_errors(app)
    api = APIRouter(prefix=API_PREFIX, responses=_REFUSALS)
    for module in (run_routes, run_data_routes, catalogue_routes, system_routes):
        api.include_router(module.router)
    app.include_router(api)
    app.include_router(media_routes.router, responses=_REFUSALS)
    answer_unknown_paths(app, prefixes=("/api", "/media"))
