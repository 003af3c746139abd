"""Headers that every answer carries, and which web pages may call us."""

from collections.abc import Sequence

from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SECURITY_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class SecurityHeaders:
    """Adds the headers above to answers that have none of their own for the purpose."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_hardened(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_hardened)


def edge_middleware(allowed_origins: Sequence[str]) -> list[Middleware]:
    """What the application is wrapped in, outermost first.

    Pages of `allowed_origins` may call us with a token; no cookie is ever read, so none is allowed.
    """
    layers = [Middleware(SecurityHeaders)]
    if allowed_origins:
        layers.append(
            Middleware(
                CORSMiddleware,
                allow_origins=list(allowed_origins),
                allow_methods=["POST"],
                allow_headers=[
                    "authorization",
                    "content-type",
                    "accept",
                    "x-request-id",
                    "x-causal-token",
                    "traceparent",
                    "tracestate",
                ],
                expose_headers=["x-request-id", "x-causal-token", "retry-after"],
                max_age=600,
            )
        )
    return layers
