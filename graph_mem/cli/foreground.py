"""What `up` does: have a database, prepare it, serve until told to stop, end in order."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

import httpx
import psutil
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from graph_mem import app
from graph_mem.api.tokens import issue
from graph_mem.cli import serving
from graph_mem.cli.access import local_server, open_database, require_suitable, with_address, with_signing_key
from graph_mem.cli.output import Output
from graph_mem.cli.people import Desk
from graph_mem.cli.telemetry import observed
from graph_mem.config import Settings
from graph_mem.core.model import Role
from graph_mem.local.conf import Ports
from graph_mem.local.folder import Announcement, DataFolder
from graph_mem.local.home import Address, has_ended
from graph_mem.local.server import LocalServer
from graph_mem.services import utc_now
from graph_mem.services.admin import ensure_principal
from graph_mem.services.threads import in_thread
from graph_mem.signing import token_settings

WATCH_S = 0.5
KNOWN_TIMEOUT_S = 30.0
WHO = {"query": "{viewer{__typename}}"}
ORGANIZATION = "local"
USER = "owner"


@dataclass(frozen=True, slots=True)
class Ready:
    """Where everything is, for whoever started it."""

    graphql: str
    token: str | None
    neo4j: Address


class Foreground:
    """One run of an instance, in this process but for the database."""

    def __init__(self, settings: Settings, output: Output, folder: DataFolder) -> None:
        self._settings = with_signing_key(settings)
        self._output = output
        self._folder = folder
        self._server = None if settings.neo4j_uri else local_server(settings, output)

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT, or until a part fails for good.

        Downloads come first, while a signal still ends the process at once: they go on where they were cut off.
        """
        with serving.bind(self._settings.host, self._settings.port) as listener:
            if self._server is not None:
                self._server.prepare()
            if self._settings.embedder in ("e5-small-v2", "onnx"):
                app.model_folder(self._settings)
            with observed(self._settings):
                serving.run(self._serve(listener))

    async def _serve(self, listener: socket.socket) -> None:
        try:
            await serving.until_stopped(self._run_parts(listener))
        finally:
            if self._server is not None:
                await asyncio.to_thread(self._server.stop)

    async def _run_parts(self, listener: socket.socket) -> None:
        address = await self._database()
        settings = with_address(self._settings, address)
        await require_suitable(settings)
        await app.prepare(settings)
        ready = Ready(graphql=f"{serving.url_of(listener)}/graphql", token=await local_token(settings), neo4j=address)
        watch = asyncio.create_task(self._keep_database_running(), name="database")
        try:
            async with serving.started(app.build(settings, work=True), listener) as serve:
                await serving.warmed(settings)
                await until_known(ready)
                self._announce(ready)
                await serving.until_any(serve, watch)
        finally:
            watch.cancel()
            await asyncio.wait({watch})

    async def _database(self) -> Address:
        """Where Neo4j answers."""
        if self._server is None:
            return given_address(self._settings)
        ports = Ports(bolt=self._settings.neo4j_port, http=self._settings.neo4j_http_port)
        return await started(self._server, partial(self._server.start, ports))

    async def _keep_database_running(self) -> None:
        """Start our Neo4j again whenever it ends by itself; the service bridges the gap by retries."""
        if self._server is None:
            await asyncio.Event().wait()
            return
        while True:
            await until_ended(self._server.home.process())
            self._output.note("Neo4j ended unexpectedly; starting it again.")
            await started(self._server, self._server.restart)

    def _announce(self, ready: Ready) -> None:
        neo4j = ready.neo4j
        self._folder.announce(Announcement(ready.graphql, neo4j.uri, neo4j.browser or None))
        document = {
            "graphql": ready.graphql,
            "token": ready.token,
            "neo4j": {"uri": neo4j.uri, "user": neo4j.user, "password": neo4j.password},
            "browser": neo4j.browser or None,
        }
        self._output.show(document, panel(ready, self._folder), Text(ready.token or ""))


async def started(server: LocalServer, start: Callable[[], Address]) -> Address:
    """What `start`, which has the server started, returns; cancelled, it leaves no server behind."""
    return await in_thread(start, stop=partial(asyncio.to_thread, server.stop), every_s=WATCH_S)


async def until_ended(process: psutil.Process | None) -> None:
    """Wait for the end of a process that may not be a child of ours."""
    while process is not None and not has_ended(process):  # noqa: ASYNC110 nothing sets an event when it ends
        await asyncio.sleep(WATCH_S)


async def until_known(ready: Ready) -> None:
    """Wait, within reason, until the API answers the holder of our token: the first time, Neo4j plans for it."""
    if ready.token is None:
        return
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {ready.token}"}, timeout=KNOWN_TIMEOUT_S) as client:
        with suppress(httpx.HTTPError, TimeoutError):
            async with asyncio.timeout(KNOWN_TIMEOUT_S):
                while (await client.post(ready.graphql, json=WHO)).is_error:  # noqa: ASYNC110 nothing sets an event
                    await asyncio.sleep(WATCH_S)


async def local_token(settings: Settings) -> str | None:
    """A token of the owner of the local organization, both made if missing; None if a provider issues tokens."""
    async with open_database(settings) as database:
        enrolled = await ensure_principal(Desk(database), organization=ORGANIZATION, user=USER, role=Role.OWNER)
    if settings.jwt_jwks_url is not None:
        return None
    return issue(
        token_settings(settings),
        org_id=enrolled.org_id,
        user_id=enrolled.user_id,
        now=utc_now(),
        lifetime=timedelta(days=settings.token_lifetime_days),
    )


def given_address(settings: Settings) -> Address:
    """The Neo4j that the operator gave; it may have a Browser, but we do not know where."""
    password = settings.neo4j_password
    return Address(
        uri=settings.neo4j_uri or "",
        browser="",
        user=settings.neo4j_user,
        password=password.get_secret_value() if password else "",
    )


def panel(ready: Ready, folder: DataFolder) -> Panel:
    """What a person needs to go on, but for the token, which is shown after it to be copied whole."""
    table = Table(show_header=False, box=None)
    rows = {
        "GraphQL": ready.graphql,
        "GraphiQL": ready.graphql.removesuffix("graphql") + "graphiql",
        "Neo4j Browser": ready.neo4j.browser,
        "Neo4j": f"{ready.neo4j.uri} as {ready.neo4j.user}; the password is in {folder.root / 'neo4j-password'}",
        "Data": str(folder.root),
        "Token": "below" if ready.token else "from your identity provider",
    }
    for name, value in rows.items():
        if value:
            table.add_row(Text(name, style="bold"), Text(value, overflow="fold"))
    return Panel(table, title="graph-mem is up; Ctrl-C stops it", expand=False)
