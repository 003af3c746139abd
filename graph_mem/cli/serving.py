"""An ASGI application on a port of ours, ended by a signal that we handle."""

import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Coroutine, Generator
from typing import Any, TypeVar

import uvicorn
from starlette.applications import Starlette

from graph_mem import app
from graph_mem.cli.access import open_database
from graph_mem.config import Settings
from graph_mem.errors import OperationTimeout, PortInUse, ServiceUnavailable, SetupError
from graph_mem.services.warming import warm

T = TypeVar("T")

SHUTDOWN_TIMEOUT_S = 15
BACKLOG = 2048
POLL_S = 0.05
MAX_FRAME_BYTES = 1 << 20


class Server(uvicorn.Server):
    """uvicorn that leaves signals to us: the database must outlive the API."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Nothing is captured."""
        yield


def make_server(application: Starlette) -> Server:
    """A server for `application`; logging stays as we configured it."""
    config = uvicorn.Config(
        application,
        log_config=None,
        access_log=False,
        lifespan="on",
        ws="websockets-sansio",
        ws_max_size=MAX_FRAME_BYTES,
        server_header=False,
        timeout_graceful_shutdown=SHUTDOWN_TIMEOUT_S,
    )
    return Server(config)


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; port zero takes any free one.

    Errors: PortInUse.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as problem:
        listener.close()
        raise PortInUse(
            f"Cannot listen on {host} port {port} ({problem.strerror}); choose another one, or 0 for any free one."
        ) from problem
    listener.listen(BACKLOG)
    listener.setblocking(False)
    return listener


def url_of(listener: socket.socket) -> str:
    """The address people and programs here reach it by."""
    host, port = listener.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104 compared
    return f"http://{shown}:{port}"


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run on uvloop, where there is one."""
    if sys.platform == "win32":
        return asyncio.run(main)
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


async def until_stopped(work: Coroutine[Any, Any, None]) -> None:
    """Run `work` until it ends, or cancel it at SIGTERM or SIGINT and wait until it has ended in order.

    A second signal is a matter of patience, not of force. Errors: what `work` raises.
    """
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        working.cancel()
        await asyncio.wait({working})
    if not working.cancelled():
        working.result()


async def until_any(*tasks: asyncio.Task[Any]) -> None:
    """Wait until one of the tasks ends, and raise what it raised; cancelled, it leaves them to whoever made them."""
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()


@contextlib.asynccontextmanager
async def started(application: Starlette, listener: socket.socket) -> AsyncGenerator[asyncio.Task[None]]:
    """The task that serves `application` once it accepts requests; it is ended in order afterwards."""
    server = make_server(application)
    serve = asyncio.create_task(server.serve(sockets=[listener]), name="api")
    try:
        await _until_started(server, serve)
        yield serve
    finally:
        server.should_exit = True
        await serve


async def _until_started(server: Server, serve: asyncio.Task[None]) -> None:
    """Wait until the server accepts requests.

    Errors: SetupError if it gives up.
    """
    while not server.started:
        if serve.done():
            raise SetupError("The API could not be started; the log above says why.")
        await asyncio.sleep(POLL_S)


async def warmed(settings: Settings) -> None:
    """Return when a first search is as quick as any; a database that is away now is waited for by the service."""
    async with open_database(settings) as database:
        with contextlib.suppress(ServiceUnavailable, OperationTimeout):
            placed = await app.in_force(settings, database)
            await warm(database, dimension=placed.source.dimension, space=placed.space)
