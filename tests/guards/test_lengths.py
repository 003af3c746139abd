"""Every string that the API takes, of 40,000 bytes: refused or a plain answer, and only a text is ever kept.

A longer one than an index can hold, once committed, takes the whole database down: no way in is left untried.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from graphql import (
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLScalarType,
    get_named_type,
)

from graph_mem.api.session import Context
from graph_mem.core.proposals import ProposalKind
from graph_mem.core.retrieval import Query
from graph_mem.services import Deps, capture, facts, lifecycle, pins, recall, relations, scratch
from graph_mem.services.capture import NewMemory
from graph_mem.services.facts import NewFact
from graph_mem.services.pins import NewPin
from graph_mem.store.db import Tx, rows
from tests.guards.matrix import schema, shape
from tests.people import Company, company, work_off
from tests.services.lives import proposed, saved

BYTES = 40_000
LONG = {"ASCII": "a" * BYTES, "multi-byte": "\u6771" * (BYTES // 3), "words": "wide " * (BYTES // 5)}
STRINGS = ("ID", "String", "JSON", "DateTime")
REFUSALS = {"BAD_USER_INPUT", "NOT_FOUND", "CONFLICT", "FORBIDDEN"}
TEXTS = {
    "Mutation.addScratch(input.text)",
    "Mutation.captureMemory(input.text)",
    "Mutation.savePolicy(input.text)",
    "Query.context(input.instruction)",
    "Query.search(input.text)",
}
"""Where so long a string is a text: kept as it is, or searched for."""

KEPT = """
MATCH (n) WHERE n.org = $org AND NOT n:Trace AND NOT n:RunTrace AND NOT n:AccessEntry
RETURN count(n) AS nodes
"""
SICK = "SHOW INDEXES YIELD name, state WHERE state <> 'ONLINE' RETURN name, state"


@dataclass(frozen=True)
class Leaf:
    """One string among what a field takes, `path` from the argument down; `parent` owns the field."""

    parent: str
    field: str
    path: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.parent}.{self.field}({'.'.join(self.path)})"


def leaves() -> Iterator[Leaf]:
    for type_ in shape().type_map.values():
        if isinstance(type_, GraphQLObjectType) and not type_.name.startswith("__"):
            fields: dict[str, Any] = dict(type_.fields)
            for field, one in fields.items():
                for argument, given in one.args.items():
                    yield from (Leaf(type_.name, field, path) for path in strings(given.type, (argument,)))


def strings(type_: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    inner: Any = get_named_type(type_)
    if inner.name in STRINGS:
        yield path
    elif isinstance(inner, GraphQLInputObjectType):
        for name, one in inner.fields.items():
            yield from strings(one.type, (*path, name))


@dataclass(frozen=True)
class Shelf:
    """An organization with one of each, for what else a field wants."""

    deps: Deps
    org: Company
    ids: dict[str, str]

    def valid(self, leaf: Leaf, name: str, type_: str) -> Any:
        """Something that will do for the required argument or input field `name`."""
        if type_ in ("ID", "String"):
            of_field = self.ids.get(leaf.field) if name in ("id", "confirmId") else None
            return of_field or self.ids.get(name) or name
        if name == "expectedVersion" and leaf.field.startswith("update"):
            return 0
        return {"JSON": {}, "Int": 1, "Float": 0.5, "Boolean": False, "DateTime": "2026-01-01T00:00:00Z"}.get(
            type_, self.ids.get(type_)
        )


@pytest.fixture(scope="module")
async def shelf(deps: Deps) -> Shelf:
    org = await company(deps)
    memory, other, third, fourth = await saved(deps, org, "Ana leads.", "Tom follows.", "Mia rests.", "Ivo asks.")
    fact = (
        await facts.save(
            deps, org.owner, NewFact(subject="Ana", relation="role", statement="Ana leads.", source_ids=(memory,))
        )
    ).fact
    assert fact is not None
    link = await relations.relate(deps, org.owner, from_id=memory, to_id=other, kind="supports")
    pin = (await pins.pin(deps, org.owner, NewPin(memory_id=other, slot="first"))).pin
    note = await scratch.add(deps, org.owner, run_id="run", text="A note.")
    proposal = await proposed(deps, org, ProposalKind.DEMOTE, third)
    ids = {
        "id": memory, "confirmId": memory, "restore": fourth, "fromId": memory, "toId": other, "memoryId": memory,
        "label": "note", "kind": "supports", "sourceIds": memory, "retractFact": fact.id, "unpin": pin.id,
        "correctRelation": link.relation.id, "promoteScratch": note.id, "decide": proposal.id, "fact": fact.id,
        "Memory": memory, "Fact": fact.id,
    }  # fmt: skip
    await lifecycle.archive(deps, org.owner, fourth)
    await saved(deps, org, "ana@acme.example wrote.")
    (entity,) = await deps.db.run("MATCH (e:Entity {org: $org}) RETURN e.id AS id", org=org.id)
    ids["Entity"] = entity["id"]
    return Shelf(deps, org, ids)


def value(shelf: Shelf, leaf: Leaf, type_: Any, at: tuple[str, ...], text: str) -> Any:
    """The least that `type_` takes where `at` is the way to it, with `text` where the leaf is."""
    inner: Any = type_.of_type if isinstance(type_, GraphQLNonNull) else type_
    if isinstance(inner, GraphQLList):
        return [value(shelf, leaf, inner.of_type, at, text)]
    if isinstance(inner, GraphQLInputObjectType):
        return {
            name: value(shelf, leaf, one.type, (*at, name), text)
            for name, one in inner.fields.items()
            if leaf.path[: len(at) + 1] == (*at, name) or isinstance(one.type, GraphQLNonNull)
        }
    if leaf.path == at:
        return {text: text} if inner.name == "JSON" else text
    if isinstance(inner, GraphQLEnumType):
        return next(iter(inner.values))
    return shelf.valid(leaf, at[-1], inner.name)


def operation(shelf: Shelf, leaf: Leaf, text: str) -> tuple[str, dict[str, Any]]:
    """A document that asks for the field, and its variables."""
    type_ = shape().type_map[leaf.parent]
    assert isinstance(type_, GraphQLObjectType)
    one: Any = type_.fields[leaf.field]
    given: dict[str, Any] = {
        name: arg.type for name, arg in one.args.items() if leaf.path[0] == name or isinstance(arg.type, GraphQLNonNull)
    }
    declared = ", ".join(f"${name}: {kind}" for name, kind in given.items())
    passed = ", ".join(f"{name}: ${name}" for name in given)
    answer: Any = get_named_type(one.type)
    inner = "{ errors { code } }" if "errors" in getattr(answer, "fields", {}) else "{ __typename }"
    asked = f"{leaf.field}({passed}) {'' if isinstance(answer, GraphQLScalarType) else inner}"
    variables = {name: value(shelf, leaf, kind, (name,), text) for name, kind in given.items()}
    if leaf.parent in ("Query", "Mutation", "Subscription"):
        return f"{leaf.parent.lower()}({declared}) {{ {asked} }}", variables
    if leaf.parent == "Vocabulary":
        return f"query({declared}) {{ vocabulary {{ {asked} }} }}", variables
    node = f'node(id: "{shelf.ids[leaf.parent]}") {{ ... on {leaf.parent} {{ {asked} }} }}'
    return f"query({declared}) {{ {node} }}", variables


async def codes(shelf: Shelf, document: str, variables: dict[str, Any]) -> list[str | None]:
    """The codes of all errors, of the request and in the payload."""
    context = Context(shelf.deps, "long", caller=shelf.org.owner)
    given: dict[str, Any] = {"variable_values": variables, "context_value": context}
    asked = schema().subscribe if document.startswith("subscription") else schema().execute
    result: Any = await asked(document, **given)
    if hasattr(result, "__aiter__"):
        result = await anext(result)
    payloads: list[Any] = [one for one in (result.data or {}).values() if isinstance(one, dict)]
    told: list[str] = [error["code"] for one in payloads for error in one.get("errors", ())]
    return [(error.extensions or {}).get("code") for error in result.errors or ()] + told


async def counted(shelf: Shelf) -> int:
    async def work(tx: Tx) -> int:
        return (await rows(tx, KEPT, org=shelf.org.id))[0]["nodes"]

    return await shelf.deps.db.read(work)


@pytest.mark.parametrize("leaf", list(leaves()), ids=lambda leaf: leaf.name)
async def test_a_long_string_is_refused_before_anything_is_kept_or_is_a_text(shelf: Shelf, leaf: Leaf) -> None:
    before = await counted(shelf)
    for kind, text in LONG.items():
        told = await codes(shelf, *operation(shelf, leaf, text))
        assert set(told) <= REFUSALS, (kind, told)
        kept = await counted(shelf)
        if leaf.name in TEXTS:
            assert told in ([], ["CONFLICT"]), kind  # of a policy one name is used once
        else:
            assert kept == before, kind
            assert told or leaf.parent != "Mutation", kind


async def test_the_database_is_whole_after_all_of_them(shelf: Shelf) -> None:
    await work_off(shelf.deps, shelf.org.id)
    assert await shelf.deps.db.run(SICK) == []
    long = "east " * (BYTES // 5)
    made = await capture.accept(shelf.deps, shelf.org.owner, NewMemory(text=f"Quillon {long}"))
    await work_off(shelf.deps, shelf.org.id)
    page = await recall.search_page(shelf.deps, shelf.org.owner, Query("Quillon"), first=5)
    assert made.memory.id in [hit.record.id for hit in page.hits]
