"""GraphiQL from our own files: no other host is asked, and its page may not ask one."""

import gzip
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

_MEDIA = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8"}
_PACKED = (
    "react-18.2.0.js",
    "react-dom-18.2.0.js",
    "graphiql-3.8.3.js",
    "graphiql-3.8.3.css",
    "explorer-1.0.2.js",
    "explorer-1.0.2.css",
)
_PLAIN = ("console.js", "console.css")

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",  # CodeMirror and React place elements by style
        "img-src 'self' data:",
        "font-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)


def graphiql_routes() -> list[Route]:
    """The page at `/graphiql`, for an endpoint at `/graphql`, and what it loads."""
    return [
        Route("/graphiql", _page, methods=["GET"]),
        Route("/graphiql/assets/{name}", _asset, methods=["GET"]),
    ]


async def _page(_: Request) -> Response:
    headers = {"content-security-policy": CONTENT_SECURITY_POLICY, "cache-control": "no-cache"}
    return Response(_read("console.html"), headers=headers, media_type="text/html; charset=utf-8")


async def _asset(request: Request) -> Response:
    name: str = request.path_params["name"]
    media = _MEDIA.get(name.rpartition(".")[2])
    if media is None or name not in (*_PACKED, *_PLAIN):
        return Response("Not found", 404, media_type="text/plain")
    if name in _PLAIN:
        return Response(_read(name), headers={"cache-control": "no-cache"}, media_type=media)
    headers = {"cache-control": "public, max-age=31536000, immutable", "vary": "Accept-Encoding"}
    packed = _read(f"{name}.gz")
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(gzip.decompress(packed), headers=headers, media_type=media)
    return Response(packed, headers=headers | {"content-encoding": "gzip"}, media_type=media)


def _read(name: str) -> bytes:
    return (files("graph_mem.api") / "assets" / name).read_bytes()
