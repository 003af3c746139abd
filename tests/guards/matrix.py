"""The rows of isolation.toml, asked in this process by anybody."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from graphql import (
    ArgumentNode,
    FieldNode,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLUnionType,
    ObjectFieldNode,
    TypeInfo,
    TypeInfoVisitor,
    Visitor,
    build_schema,
    get_named_type,
    parse,
    visit,
)
from ulid import ULID

from graph_mem.api.errors import SafeSchema
from graph_mem.api.schema import make_schema
from graph_mem.api.session import Context
from tests.guards.opened import Remembered
from tests.guards.world import READERS, World

TABLE: Mapping[str, Any] = tomllib.loads((Path(__file__).parent / "isolation.toml").read_text("utf-8"))
KINDS = {
    **dict.fromkeys(("memory", "older", "edited"), "mem"), **dict.fromkeys(("fact", "revoked", "told"), "fact"),
    "entity": "ent", "pin": "pin", "policy": "pol", "relation": "rel", "scratch": "scr", "proposal": "prop",
    "traces": "trc",
}  # fmt: skip
COUNTS = {"totalCount", "pending", "passedOver", "belowFloor", "candidates", "fusedCandidates", "remaining"}


@dataclass(frozen=True)
class Row:
    name: str
    document: str
    takes: tuple[str, ...] = ()
    shows: str = "nothing"
    changes: bool = False
    does: Mapping[str, list[str]] | None = None
    not_in: tuple[str, ...] = ()
    once: bool = False

    @property
    def text(self) -> str:
        """The operation with the fragments it spreads, and no others."""
        pieces, texts, wanted = _fragments(), [self.document], _spread(self.document)
        used: set[str] = set()
        while missing := wanted - used:
            texts += [pieces[name] for name in sorted(missing)]
            used |= missing
            wanted |= {other for name in missing for other in _spread(pieces[name])}
        return "\n".join(texts)


@dataclass(frozen=True)
class Target:
    """What a row is asked about: an id, or a place to work in. `readers` see it."""

    variables: Mapping[str, Any]
    readers: frozenset[str]
    place: str | None = None
    kind: str = ""
    asked: tuple[str, ...] = field(default=())

    @property
    def like(self) -> str:
        """What an unknown id must have in common with this one."""
        return self.kind + "".join(self.variables.get("scope", ()))


def _spread(text: str) -> set[str]:
    return set(re.findall(r"\.\.\.\s*(\w+)", text)) - {"on"}


@cache
def _fragments() -> dict[str, str]:
    parts = (one.strip() for one in TABLE["fragments"].split("fragment "))
    return {part.split()[0]: f"fragment {part}" for part in parts if part}


def table() -> tuple[Row, ...]:
    rows: list[Row] = []
    for name, given in TABLE.items():
        if isinstance(given, dict) and "document" in given:
            listed = {key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}
            rows.append(Row(name, **listed))
    return tuple(rows)


@cache
def schema() -> SafeSchema:
    return make_schema()


@cache
def shape() -> GraphQLSchema:
    return build_schema(schema().as_str())


async def ask(world: World, viewer: str, row: Row, variables: Mapping[str, Any]) -> dict[str, Any]:
    """The answer as a client gets it, of a subscription the first event, and what was run for it.

    What an id that one may not see takes longer than one that was never given tells that it exists.
    """
    database = Remembered(world.deps.db)
    context = Context(replace(world.deps, db=database), "matrix", caller=world.people.get(viewer))
    answer = await _asked(row, variable_values=dict(variables), context_value=context)
    return {**answer, "ran": sorted(database.ran)}


async def _asked(row: Row, **given: Any) -> dict[str, Any]:
    if row.name.startswith("Subscription."):
        stream = await schema().subscribe(row.text, **given)
        if not hasattr(stream, "__aiter__"):
            return _answer(stream)
        async for event in stream:
            await stream.aclose()
            return _answer(event)
        return {"data": None, "errors": []}
    return _answer(await schema().execute(row.text, **given))


def _answer(result: Any) -> dict[str, Any]:
    errors = [
        {"message": one.message, "code": (one.extensions or {}).get("code"), "path": one.path}
        for one in result.errors or ()
    ]
    return {"data": result.data, "errors": errors}


def targets(world: World, row: Row) -> Iterator[Target]:
    """Everything that a row is to be asked about."""
    for kind in row.takes:
        if kind == "scope":
            deal, client = world.places["deal"].scope, world.places["client"].scope
            yield Target({"scope": {"clientId": client.client_id}}, READERS["client"], "client", kind)
            yield Target({"scope": {"dealId": deal.deal_id}}, READERS["deal"], "deal", kind)
            yield Target({"scope": {"clientId": world.alien}}, READERS["foreign"], None, kind, (world.alien,))
        elif kind in ("traces", "runs"):
            for maker, readers in TABLE[kind].items():
                id = world.traces[maker] if kind == "traces" else f"run of {maker}"
                yield Target({"id": id}, frozenset(readers), None, kind, (id,))
        else:
            for place, ids in world.ids.items():
                if kind in ids:
                    readers = READERS[place]
                    if row.shows == "author":
                        readers = frozenset({{"private": "alice", "foreign": "stranger"}.get(place, "owner")})
                    yield Target({"id": ids[kind]}, readers, place, kind, (ids[kind],))


def unknown(target: Target) -> Target:
    """The same with an id that was never given."""
    if target.kind == "scope":
        given = {name: f"{'cli' if name == 'clientId' else 'deal'}_{ULID()}" for name in target.variables["scope"]}
        return Target({"scope": given}, frozenset(), None, target.kind, tuple(given.values()))
    id = f"{KINDS[target.kind]}_{ULID()}" if target.kind in KINDS else f"run {ULID()}"
    return Target({"id": id}, frozenset(), None, target.kind, (id,))


def anonymous(answer: dict[str, Any], target: Target) -> Any:
    """`answer` without the id that was asked for."""
    text = json.dumps(answer, ensure_ascii=False, default=str)
    names = {value for one in target.variables.values() for value in (one.values() if isinstance(one, dict) else [one])}
    for name in names:
        text = text.replace(str(name), "asked")
    return json.loads(text)


def code_of(answer: dict[str, Any]) -> str | None:
    """Why nothing was changed; None if something was."""
    if answer["errors"]:
        return answer["errors"][0]["code"]
    (payload,) = answer["data"].values()
    return payload["errors"][0]["code"] if payload["errors"] else None


def selected(row: Row) -> set[str]:
    """Every field that the operation asks for, as `Type.field`."""
    info, found = TypeInfo(shape()), set[str]()

    class Fields(Visitor):
        def enter_field(self, node: FieldNode, *_: Any) -> None:
            parent = info.get_parent_type()
            found.add(f"{parent.name if parent else '?'}.{node.name.value}")

    visit(parse(row.text), TypeInfoVisitor(info, Fields()))
    return found


def ids_given(row: Row) -> set[str]:
    """Every argument that the operation fills from its variables, as `Type.field(input.name)`."""
    info, found = TypeInfo(shape()), set[str]()
    fields: list[str] = []
    names: list[str] = []

    class Given(Visitor):
        def enter_field(self, node: FieldNode, *_: Any) -> None:
            parent = info.get_parent_type()
            fields.append(f"{parent.name if parent else '?'}.{node.name.value}")

        def leave_field(self, *_: Any) -> None:
            fields.pop()

        def enter_argument(self, node: ArgumentNode, *_: Any) -> None:
            names.append(node.name.value)

        def enter_object_field(self, node: ObjectFieldNode, *_: Any) -> None:
            names.append(node.name.value)

        def leave_argument(self, *_: Any) -> None:
            names.pop()

        def leave_object_field(self, *_: Any) -> None:
            names.pop()

        def enter_variable(self, *_: Any) -> None:
            if fields:
                found.add(f"{fields[-1]}({'.'.join(names)})")

    visit(parse(row.text), TypeInfoVisitor(info, Given()))
    return found


def ids_taken() -> Iterator[tuple[str, set[str]]]:
    """Every id that any field takes, and the arguments any of which would fill it."""
    for type_ in shape().type_map.values():
        if isinstance(type_, GraphQLObjectType) and not type_.name.startswith("__"):
            for name, one in type_.fields.items():
                for argument, given in one.args.items():
                    for path in _ids_in(given.type, (argument,)):
                        heads = [path[:length] for length in range(1, len(path) + 1)]
                        filled = [f"{type_.name}.{name}({'.'.join(head)})" for head in heads]
                        yield filled[-1], set(filled)


def _ids_in(type_: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    inner = get_named_type(type_)
    if inner.name == "ID":
        yield path
    elif isinstance(inner, GraphQLInputObjectType):
        for name, one in inner.fields.items():
            yield from _ids_in(one.type, (*path, name))


def must_be_asked() -> set[str]:
    """Every root field, every field that leads to a record, takes an id, or counts."""
    return set(_must_be_asked(shape()))


def _must_be_asked(schema: GraphQLSchema) -> Iterator[str]:
    leading = _leading_to_records(schema)
    roots = {one.name for one in (schema.query_type, schema.mutation_type, schema.subscription_type) if one}
    for type_ in schema.type_map.values():
        if not isinstance(type_, GraphQLObjectType) or type_.name.startswith("__"):
            continue
        for name, one in type_.fields.items():
            takes_id = any(str(get_named_type(arg.type)) == "ID" for arg in one.args.values())
            if type_.name in roots or get_named_type(one.type).name in leading or takes_id or name in COUNTS:
                yield f"{type_.name}.{name}"


def _leading_to_records(schema: GraphQLSchema) -> set[str]:
    """Types that are records, or have a field that leads to one."""
    found = {"Node", "Record"}
    while True:
        more = {
            type_.name
            for type_ in schema.type_map.values()
            if (isinstance(type_, (GraphQLObjectType, GraphQLInterfaceType)) and _leads(type_, found))
            or (isinstance(type_, GraphQLUnionType) and any(one.name in found for one in type_.types))
        }
        if more <= found:
            return found
        found |= more


def _leads(type_: GraphQLObjectType | GraphQLInterfaceType, found: set[str]) -> bool:
    if type_.name in ("Query", "Mutation", "Subscription") or type_.name.startswith("__"):
        return False
    return any(one.name in found for one in type_.interfaces) or any(
        get_named_type(one.type).name in found for one in type_.fields.values()
    )
