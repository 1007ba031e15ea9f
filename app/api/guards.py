"""What is refused before any route sees it: foreign hosts, cross-site changes, bodies without end."""

from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.errors import ApiError, refusal

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


async def _refuse(error: ApiError, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": error.detail})
    else:
        await refusal(error)(scope, receive, send)


def _host_name(netloc: str) -> str | None:
    try:
        return urlsplit(f"//{netloc}").hostname
    except ValueError:
        return None


class HostGuard:
    """Answers to its own names only.

    A page of another site can point its own name at 127.0.0.1 (DNS rebinding) and would then count as same-origin; the
    Host header still shows the foreign name.
    """

    def __init__(self, app: ASGIApp, *, names: Collection[str]) -> None:
        self.app = app
        self.names = frozenset(name.lower() for name in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan" and _host_name(Headers(scope=scope).get("host", "")) not in self.names:
            known = ", ".join(sorted(self.names))
            message = f"this server answers to {known} only; add the name to VLMSCOPE_ALLOWED_HOSTS if it is yours"
            await _refuse(ApiError(400, "unknown_host", message), scope, receive, send)
            return
        await self.app(scope, receive, send)


class CrossSiteGuard:
    """Refuses what another site's page would change here: the browser says where a request comes from."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        changes = scope["type"] == "websocket" or scope.get("method", "GET") not in _SAFE_METHODS
        if changes and _is_cross_site(Headers(scope=scope)):
            message = "this request comes from a page of another site; send it from this server's pages or a program"
            await _refuse(ApiError(403, "cross_site", message), scope, receive, send)
            return
        await self.app(scope, receive, send)


def _is_cross_site(headers: Headers) -> bool:
    if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        return True
    origin = headers.get("origin")
    return origin is not None and origin.partition("://")[2] != headers.get("host")


class BodyLimit:
    """Cuts request bodies below a prefix at a number of bytes; uvicorn has no limit of its own."""

    def __init__(self, app: ASGIApp, *, prefix: str, limit: int) -> None:
        self.app = app
        self.prefix = prefix
        self.limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(self.prefix):
            await self.app(scope, receive, send)
            return
        too_large = ApiError(413, "too_large", f"the body is larger than {self.limit:,} bytes; a run's needs far less")
        length = Headers(scope=scope).get("content-length", "0")
        if not length.isdecimal() or len(length) > 15 or int(length) > self.limit:
            await _refuse(too_large, scope, receive, send)
            return
        received = 0

        async def receive_counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self.limit:
                raise too_large
            return message

        await self.app(scope, receive_counted, send)
