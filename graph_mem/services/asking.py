"""A caller's query made ready for the store: checked, and its scope and source resolved."""

from collections.abc import Sequence

from graph_mem.core.model import Place, Principal, Scope, Source, SourceKind, Standing, is_id
from graph_mem.core.retrieval import Query, ScopeName, Span
from graph_mem.core.text import check_name
from graph_mem.core.vocabulary import Vocabulary
from graph_mem.errors import InvalidInput
from graph_mem.services import Deps
from graph_mem.store import scopes, search
from graph_mem.store.db import Tx
from graph_mem.store.search import Where

MAX_QUERY_CHARS = 1_000_000
_FACT = "fact"


async def where(deps: Deps, principal: Principal, query: Query, vocabulary: Vocabulary) -> Where:
    """The filters of `query`, resolved.

    Errors: InvalidInput for a filter that cannot be; NotFound for a scope that the caller may not read.
    """
    _check(query, vocabulary)
    found = principal.scopes
    if query.scope is not None:
        found = await _chain(deps, principal, query.scope)
    sources = None
    if query.source_uri is not None:
        uri = check_name(query.source_uri, path=("sourceUri",))
        sources = _sources(principal, uri, found if found is not None else await readable(deps, principal))
    return Where(
        scopes=found,
        standings=_standings(query),
        kinds=query.kinds if len(set(query.kinds)) == 1 else (),
        labels=query.labels,
        entity_ids=query.entity_ids,
        sources=sources,
        created=query.created,
        occurred=query.occurred,
        held_at=query.as_of if query.known_at is None else None,
    )


async def readable(deps: Deps, principal: Principal) -> tuple[Scope, ...]:
    """Every scope that the caller may read."""
    if principal.scopes is not None:
        return principal.scopes

    async def work(tx: Tx) -> tuple[Scope, ...]:
        return await search.scopes_of(tx, principal)

    return await deps.db.read(work)


async def _chain(deps: Deps, principal: Principal, name: ScopeName) -> tuple[Scope, ...]:
    async def work(tx: Tx) -> Scope:
        return await scopes.resolve(tx, principal, client_id=name.client_id, deal_id=name.deal_id)

    scope = await deps.db.read(work)
    return tuple(one for one in scope.chain() if principal.reads(Place(principal.org_id, one)))


def _sources(principal: Principal, uri: str, found: Sequence[Scope]) -> tuple[str, ...]:
    """The key that `uri` has in each place within reach."""
    source = Source(SourceKind.USER, principal.user_id, uri)
    places = (Place(principal.org_id, scope, owner) for scope in found for owner in (None, principal.user_id))
    return tuple(key for place in places if (key := source.token(place)))


def _standings(query: Query) -> tuple[Standing, ...]:
    archived = (Standing.ARCHIVED,) if query.include_archived or query.known_at is not None else ()
    superseded = (Standing.SUPERSEDED,) if query.as_of is not None or query.known_at is not None else ()
    return (Standing.CURRENT, *superseded, *archived)


def _check(query: Query, vocabulary: Vocabulary) -> None:
    if not query.text.strip():
        raise InvalidInput("The text is empty, expected a question or some words.", path=("text",))
    if len(query.text) > MAX_QUERY_CHARS:
        raise InvalidInput(
            f"The text has {len(query.text)} characters, expected at most {MAX_QUERY_CHARS}.", path=("text",)
        )
    for label in query.labels:
        if label != _FACT:
            vocabulary.label(label)
    for id in query.entity_ids:
        if not is_id(id, "ent"):
            raise InvalidInput(f"{id[:80]!r} is not the id of an entity.", path=("entityIds",))
    for name, span in (("created", query.created), ("occurred", query.occurred)):
        _check_span(name, span)


def _check_span(name: str, span: Span | None) -> None:
    if span is not None and span.start is not None and span.end is not None and span.start >= span.end:
        raise InvalidInput(f"{name}.from is not before {name}.to, expected a stretch of time.", path=(name,))
