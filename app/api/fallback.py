"""Refuses unknown paths and methods below the interface's prefixes, which the pages' mount at / would swallow."""

from typing import NoReturn

from fastapi import FastAPI, Request
from starlette.routing import Match

from app.api.errors import ApiError

_METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE")


def answer_unknown_paths(app: FastAPI, *, prefixes: tuple[str, ...]) -> None:
    """Call this after every route below the prefixes has been added."""
    known = tuple(app.routes)

    def refuse(request: Request) -> NoReturn:
        path = request.url.path
        scopes = {method: {**request.scope, "method": method} for method in _METHODS}
        allowed = [m for m, scope in scopes.items() if any(route.matches(scope)[0] is Match.FULL for route in known)]
        if allowed:
            names = ", ".join(allowed)
            raise ApiError(405, "method_not_allowed", f"{path} takes {names}, not {request.method}", allow=names)
        raise ApiError(404, "not_found", f"there is nothing at {path}; GET /api/v1/openapi.json lists what there is")

    for prefix in prefixes:
        for path in (prefix, prefix + "/{rest:path}"):
            app.add_route(path, refuse, methods=list(_METHODS), include_in_schema=False)
