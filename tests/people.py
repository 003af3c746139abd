"""Organizations, principals and everything the use cases need, for tests on a real Neo4j."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from ulid import ULID

from graph_mem.app import HANDLERS
from graph_mem.core.model import OrganizationId, Principal, Role, UserId
from graph_mem.models.embedder import Embedder, EmbedderState
from graph_mem.models.encoder import Encoder
from graph_mem.models.extractor import Extractor
from graph_mem.services import Deps, admin, identity
from graph_mem.services.settings import SettingsCache
from graph_mem.services.tracing import TraceWriter
from graph_mem.services.wakeups import Wakeups
from graph_mem.services.worker import Worker
from graph_mem.store.db import Database
from tests.encoders import HashEncoder


class FixedClock:
    """A clock that stands until it is moved."""

    def __init__(self, now: datetime = datetime(2026, 11, 30, 12, tzinfo=UTC)) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def move(self, **by: float) -> datetime:
        self.now += timedelta(**by)
        return self.now


class WordTokenizer:
    """Counts words: for tests about budgets, not about a model's tokens."""

    def count(self, text: str) -> int:
        return len(text.split())


OPEN: set[TraceWriter] = set()
"""The writers of all that `deps_on` has made and not closed yet."""


@asynccontextmanager
async def deps_on(
    database: Database, *, load: Callable[[], Encoder] = HashEncoder, clock: Callable[[], datetime] | None = None
) -> AsyncIterator[Deps]:
    """Everything the use cases need, with an encoder that is about order, not meaning."""
    encoder = load()
    embedder = Embedder(lambda: encoder, profile=encoder.profile)
    embedder.start()
    assert (await embedder.settled()).state is EmbedderState.READY
    traces = TraceWriter(database)
    OPEN.add(traces)
    deps = Deps(
        db=database,
        embedder=embedder,
        extractor=Extractor(),
        tokenizer=WordTokenizer(),
        settings=SettingsCache(database, ttl_s=0.0),
        traces=traces,
        wakeups=Wakeups(),
    )
    try:
        yield replace(deps, clock=clock) if clock else deps
    finally:
        OPEN.remove(traces)
        await traces.aclose()
        await embedder.aclose()


@dataclass(frozen=True)
class Company:
    """A fresh organization, its people by name."""

    deps: Deps
    id: OrganizationId
    name: str
    owner: Principal

    async def member(
        self, name: str, role: Role = Role.MEMBER, *, client: str | None = None, deal: str | None = None
    ) -> Principal:
        """The member of this name, made with role and assignment if need be."""
        made = await admin.ensure_principal(
            self.deps, organization=self.name, user=f"{name}@{self.name}", role=role, client=client, deal=deal
        )
        found = await identity.principal(self.deps, org_id=made.org_id, user_id=made.user_id)
        assert found is not None
        return found


async def company(deps: Deps) -> Company:
    """A new organization with its owner."""
    name = f"org-{ULID()}"
    made = await admin.create_organization(deps, name=name, owner=f"owner@{name}")
    return Company(deps, made.org_id, name, Principal(made.org_id, UserId(made.user_id), Role.OWNER))


async def work_off(deps: Deps, org_id: OrganizationId) -> None:
    """Do every job of the organization that is due now."""
    worker = Worker(deps, HANDLERS, org_ids=[org_id])
    while await worker.work_once():
        pass
