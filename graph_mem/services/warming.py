"""Has Neo4j plan what searches and contexts ask before anybody waits: a first plan takes seconds, later ones none."""

import numpy as np

from graph_mem.core.model import ORGANIZATION, OrganizationId, Principal, Role, UserId
from graph_mem.core.vectors import FIRST, Space
from graph_mem.store import context, search
from graph_mem.store.db import Database
from graph_mem.store.search import Where
from graph_mem.store.words import Wording, wording

TIMEOUT_S = 60.0
LIMIT = 50
NOBODY = OrganizationId("org_nobody")
"""An organization that does not exist: everything is planned, nothing is read."""


async def warm(db: Database, *, dimension: int, space: Space = FIRST) -> None:
    """Run the look-up of canon and both legs, as one who sees all of an organization asks them, and one who sees some.

    Errors: ServiceUnavailable, OperationTimeout.
    """
    words = wording("graph memory")
    for role in (Role.OWNER, Role.MEMBER):
        who = Principal(NOBODY, UserId("usr_nobody"), role)
        await _canon(db, who)
        await _meaning(db, who, dimension=dimension, space=space)
        if words is not None:
            await _words(db, who, words)


async def _canon(db: Database, who: Principal) -> None:
    await db.read(lambda tx: context.canon(tx, who, ORGANIZATION), timeout_s=TIMEOUT_S)


async def _meaning(db: Database, who: Principal, *, dimension: int, space: Space) -> None:
    vector = np.full(dimension, dimension**-0.5, dtype=np.float32)
    where = Where(scopes=who.scopes)
    await db.read(
        lambda tx: search.meaning(tx, who, where, vector=vector, space=space, limit=LIMIT), timeout_s=TIMEOUT_S
    )


async def _words(db: Database, who: Principal, words: Wording) -> None:
    where = Where(scopes=who.scopes)
    await db.read(lambda tx: search.words(tx, who, where, wording=words, limit=LIMIT), timeout_s=TIMEOUT_S)
