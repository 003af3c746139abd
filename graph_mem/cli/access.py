"""How a command reaches an instance: its Neo4j, its signing key."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated

import typer
from pydantic import SecretStr

from graph_mem.cli.output import Output
from graph_mem.config import Settings
from graph_mem.errors import SetupError
from graph_mem.local.artifacts import Cache, read_lock
from graph_mem.local.conf import Memory
from graph_mem.local.folder import DataFolder
from graph_mem.local.home import Address
from graph_mem.local.java import find_java
from graph_mem.local.server import Engine, LocalServer
from graph_mem.store.db import Database
from graph_mem.store.server import inspect, require

LOCAL_ORGANIZATION = "local"
"""The organization that `up` makes, and its owner: what commands use when nobody is named."""
LOCAL_USER = "owner"

OrganizationOption = Annotated[str, typer.Option("--org", help="Name or id of the organization.")]
UserOption = Annotated[str, typer.Option("--user", help="Name or id of the user who does it.")]


def engine_for(settings: Settings, output: Output) -> Engine:
    """What the instance's own Neo4j is made of."""
    usual = Memory.for_machine()
    return Engine(
        lock=read_lock(),
        cache=Cache(settings.cache_dir, mirror=settings.maven_mirror, console=output.notes),
        java=find_java(settings.java_home),
        memory=Memory(
            heap_mib=settings.neo4j_heap_mib or usual.heap_mib,
            pagecache_mib=settings.neo4j_pagecache_mib or usual.pagecache_mib,
        ),
    )


def local_server(settings: Settings, output: Output) -> LocalServer:
    """The instance's own Neo4j, running or not."""
    return LocalServer(DataFolder(settings.data_dir).neo4j_home.path, engine_for(settings, output))


def with_address(settings: Settings, address: Address) -> Settings:
    """Settings that name this Neo4j."""
    return settings.model_copy(
        update={
            "neo4j_uri": address.uri,
            "neo4j_user": address.user,
            "neo4j_password": SecretStr(address.password),
        }
    )


def with_signing_key(settings: Settings) -> Settings:
    """Settings that can sign and check tokens: by the provider's keys, the operator's secret, or the folder's."""
    if settings.jwt_secret is not None or settings.jwt_jwks_url is not None:
        return settings
    return settings.model_copy(update={"jwt_secret": SecretStr(DataFolder(settings.data_dir).signing_key())})


def complete(settings: Settings) -> Settings:
    """Settings that name a Neo4j and a signing key, taken from the running instance where the operator gave none.

    Errors: SetupError if there is no Neo4j given and none running on the data folder.
    """
    if settings.neo4j_uri is None:
        home = DataFolder(settings.data_dir).neo4j_home
        if home.process() is None:
            raise SetupError(
                f"No instance is running on {settings.data_dir}: `graph-mem up` starts one, "
                "or GRAPH_MEM_NEO4J_URI names another Neo4j."
            )
        settings = with_address(settings, home.address())
    return with_signing_key(settings)


@asynccontextmanager
async def open_database(settings: Settings) -> AsyncGenerator[Database]:
    """A pool on the Neo4j of complete settings, closed afterwards."""
    if settings.neo4j_uri is None:
        raise SetupError("GRAPH_MEM_NEO4J_URI is not set, and no instance was asked for.")
    password = settings.neo4j_password
    database = Database.connect(
        settings.neo4j_uri,
        user=settings.neo4j_user,
        password="" if password is None else password.get_secret_value(),
        database=settings.neo4j_database,
        pool_size=settings.neo4j_pool_size,
    )
    try:
        yield database
    finally:
        await database.close()


async def require_suitable(settings: Settings) -> None:
    """Refuse a Neo4j that is not enough for us.

    Errors: UnsuitableServer, DatabaseUnavailable.
    """
    async with open_database(settings) as database:
        require(await inspect(database))
