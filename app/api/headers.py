"""Security headers of every response: a page may run only what this server sent, and only this server may frame it."""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_EVERYWHERE = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
API_HEADERS = {**_EVERYWHERE, "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'"}
PAGE_HEADERS = {
    **_EVERYWHERE,
    "X-Frame-Options": "SAMEORIGIN",
    # Gradio writes its configuration into an inline script, and its charts compile functions: hence the two unsafe
    # words.  What they leave: no foreign script, style, image or request, so that a completion cannot phone home.
    "Content-Security-Policy": "; ".join(
        (
            "default-src 'self'",
            "script-src 'self' 'unsafe-inline' 'unsafe-eval'",
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "font-src 'self' data:",
            "media-src 'self' data: blob:",
            "worker-src 'self' blob:",
            "object-src 'none'",
            "base-uri 'self'",
            "form-action 'self'",
            "frame-ancestors 'self'",
        )
    ),
}


class SecurityHeaders:
    """Adds the headers that a response does not set itself."""

    def __init__(self, app: ASGIApp, *, api_prefixes: tuple[str, ...]) -> None:
        self.app = app
        self.api_prefixes = api_prefixes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        wanted = API_HEADERS if scope["path"].startswith(self.api_prefixes) else PAGE_HEADERS

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in wanted.items():
                    headers.setdefault(name, value)
            await send(message)

        await self.app(scope, receive, send_with_headers)
