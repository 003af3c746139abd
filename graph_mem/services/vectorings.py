"""Which embedding model's vectors are in force: how each process learns of it, and moving to another one."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

from graph_mem.core.retrieval import RetrievalConfig
from graph_mem.core.vectors import FIRST, Placed, Source, Space, Vectorings, other
from graph_mem.errors import (
    Conflict,
    DatabaseUnavailable,
    EmbedderUnavailable,
    GraphMemError,
    OperationTimeout,
    SetupError,
)
from graph_mem.models.embedder import EMBEDDING_ERRORS, PROBE, Embedder
from graph_mem.models.embedders import Embedders
from graph_mem.models.profile import ModelProfile
from graph_mem.services.admin import AdminDeps
from graph_mem.services.settings import SettingsCache
from graph_mem.services.warming import warm
from graph_mem.store import leases, spaces, vectors
from graph_mem.store.db import Database, Tx
from graph_mem.store.vectors import Bare

_log = logging.getLogger(__name__)

FOLLOW_S = 1.0
"""How often each process looks which model is in force."""

_LEASE = "reembed"
_LEASE_MS = 60_000
_TIMEOUT_S = 600.0


@dataclass(frozen=True, slots=True)
class Pace:
    """`notice_s`: how long every process is given to learn of a change; `page`: passages embedded at once."""

    notice_s: float = 5.0
    page: int = 128


@dataclass(frozen=True, slots=True)
class Moved:
    """How many passages and facts this run embedded; `was`: the model that was in force before."""

    embedded: int
    was: Source


async def require(tx: Tx, space: Space) -> None:
    """Refuse vectors of a model that is not in force any more: whoever made them makes them again.

    Errors: EmbedderUnavailable.
    """
    now = await spaces.read(tx)
    if (now.in_force.space if now else FIRST) != space:
        raise EmbedderUnavailable("Another embedding model is in force by now.")


async def look(db: Database, embedders: Embedders, settings: SettingsCache) -> None:
    """Have this process use the model that is in force, with the search weights that suit it."""
    now = await db.glance(spaces.read)
    if now is not None and embedders.adopt(now):
        settings.adopt(weights(embedders.profile))
        _log.info("embedding model in force", extra={"model": embedders.profile.name, "version": now.version})


def weights(profile: ModelProfile) -> RetrievalConfig:
    """How searches weigh words and meaning by default with this model."""
    return RetrievalConfig(lexical_weight=profile.lexical_weight, vector_weight=profile.vector_weight)


@asynccontextmanager
async def following(
    db: Database, embedders: Embedders, settings: SettingsCache, *, every_s: float = FOLLOW_S
) -> AsyncGenerator[None]:
    """Have this process use the model in force, from the beginning and for as long as the context lasts."""
    with contextlib.suppress(DatabaseUnavailable, OperationTimeout):
        await look(db, embedders, settings)
    following = asyncio.create_task(_follow(db, embedders, settings, every_s=every_s), name="embedding model")
    try:
        yield
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def _follow(db: Database, embedders: Embedders, settings: SettingsCache, *, every_s: float) -> None:
    """Keep looking; a database that is away now is asked again."""
    while True:
        await asyncio.sleep(every_s)
        try:
            await look(db, embedders, settings)
        except GraphMemError as error:
            _log.warning("the model in force is not known", extra={"reason": error.message})


@dataclass(frozen=True, slots=True)
class _Move:
    """One run of `reembed`."""

    deps: AdminDeps
    embedder: Embedder
    wanted: Source
    holder: str
    pace: Pace
    tell: Callable[[int], None]


async def require_usable(embedder: Embedder) -> None:
    """Have the model embed one text before anything is written.

    Errors: SetupError naming the model and what is wrong with it.
    """
    try:
        await embedder.passages([PROBE])
    except EMBEDDING_ERRORS as error:
        raise SetupError(
            f"The embedding model {embedder.profile.name!r} cannot be used, and nothing was changed: {error.message}"
        ) from error


async def reembed(
    deps: AdminDeps,
    embedder: Embedder,
    *,
    known: Source,
    wanted: Source,
    pace: Pace = Pace(),
    tell: Callable[[int], None] = lambda _: None,
) -> Moved:
    """Put the model `wanted`, which is `embedder`'s, in force over everything that is searched by meaning.

    Its vectors are made in an index beside the one in force, which searches go on asking; once none is missing, all
    processes ask the new one, and the old one goes. Broken off anywhere, it is run again and goes on. `known` is in
    force where no model ever was moved; `tell` hears how many were embedded so far.

    Errors: SetupError, with nothing changed, if the model gives no vector of its dimension; Conflict if another run is
    at work.
    """
    await require_usable(embedder)
    move = _Move(deps, embedder, wanted, deps.new_id("job"), pace, tell)
    await _hold(move)
    try:
        now = await deps.db.read(spaces.read) or Vectorings(0, Placed(known, FIRST))
        was = now.in_force.source
        embedded = 0
        if was != wanted:
            now = await _announce(move, now)
            space = other(now.in_force.space)
            embedded = await _fill(move, space, 0)
            await warm(deps.db, dimension=wanted.dimension, space=space)
            now = await _put(move, replace(now, in_force=now.beside or now.in_force, beside=now.in_force))
            await asyncio.sleep(pace.notice_s)
        embedded = await _fill(move, now.in_force.space, embedded)
        await _free(move, now)
        return Moved(embedded, was)
    finally:
        await deps.db.write(lambda tx: leases.release(tx, _LEASE, holder=move.holder))


async def _hold(move: _Move) -> None:
    held = await move.deps.db.write(lambda tx: leases.acquire(tx, _LEASE, holder=move.holder, for_ms=_LEASE_MS))
    if not held.mine:
        raise Conflict("Another process is moving to another embedding model; one that died gives way in a minute.")


async def _announce(move: _Move, now: Vectorings) -> Vectorings:
    """Have the index of the wanted model, and every process load it."""
    space = other(now.in_force.space)
    if now.beside is not None and now.beside.source != move.wanted:
        await spaces.drop(move.deps.db, space)
    await spaces.make(move.deps.db, space, dimension=move.wanted.dimension)
    if now.beside is None or now.beside.source != move.wanted:
        now = await _put(move, replace(now, beside=Placed(move.wanted, space)))
        await asyncio.sleep(move.pace.notice_s)
    return now


async def _fill(move: _Move, space: Space, embedded: int) -> int:
    """Embed whatever has no vector in `space` until nothing is left; returns how many, with those before."""
    left = True
    while left:
        left = False
        for facts in (False, True):
            after = ""
            while page := await _lacking(move, space, facts=facts, after=after):
                left, after = True, page[-1].id
                made = await move.embedder.passages([one.text for one in page])
                work = partial(vectors.fill, passages=page, vectors=made, space=space)
                await move.deps.db.write(work, timeout_s=_TIMEOUT_S)
                await _hold(move)
                embedded += len(page)
                move.tell(embedded)
    return embedded


async def _lacking(move: _Move, space: Space, *, facts: bool, after: str) -> list[Bare]:
    async def work(tx: Tx) -> list[Bare]:
        return await spaces.lacking(tx, space, facts=facts, after=after, limit=move.pace.page)

    return await move.deps.db.read(work, timeout_s=_TIMEOUT_S)


async def _free(move: _Move, now: Vectorings) -> None:
    """Drop the vectors that are not in force, once nobody asks them."""
    if now.beside is not None:
        await _put(move, replace(now, beside=None))
        await asyncio.sleep(move.pace.notice_s)
    await spaces.drop(move.deps.db, other(now.in_force.space))


async def _put(move: _Move, then: Vectorings) -> Vectorings:
    then = replace(then, version=then.version + 1)
    if not await move.deps.db.write(lambda tx: spaces.write(tx, then)):
        raise Conflict("Another process put another embedding model in force.")
    return then
