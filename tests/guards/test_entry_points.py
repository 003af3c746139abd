"""Every way to write something: without an identity, an organization or a partition each refuses."""

# The driver leaves its **config untyped, graphql-core what a NonNull is of.
# pyright: reportUnknownMemberType=false

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from graphql import GraphQLNonNull, GraphQLScalarType, get_named_type
from neo4j import GraphDatabase
from typer.main import get_group
from typer.testing import CliRunner

from graph_mem.api.session import Context
from graph_mem.app import HANDLERS
from graph_mem.cli import app
from graph_mem.core.archive import Edge, Header, Node
from graph_mem.core.vectors import FIRST, Placed, Source
from graph_mem.errors import ArchiveDamaged
from graph_mem.local import archive
from graph_mem.local.home import Address
from graph_mem.services import Deps, capture, exports, facts, restores
from graph_mem.services.capture import NewMemory
from graph_mem.services.facts import NewFact
from graph_mem.store.db import Database, Row
from tests.guards.matrix import schema, shape
from tests.guards.test_isolation_hostile import hostile
from tests.people import company, work_off
from tests.services.whole import wipe

PUBLIC = "Query.health"
ALL = "MATCH (n) WHERE NOT n:Lease RETURN labels(n)[0] AS kind, count(*) AS nodes"
OF_NO_ORGANIZATION = {
    "up", "down", "status", "logs", "serve", "worker", "migrate", "fetch", "doctor", "db dump", "db load", "db compact",
    "reembed", "restore", "org create", "org list",
}  # fmt: skip
"""An operator's, for the whole installation; `restore` brings organizations that its file names."""

GIVEN: dict[str, tuple[str, ...]] = {
    "key create": ("--name", "robot"),
    "key revoke": ("key_01HZZZZZZZZZZZZZZZZZZZZZZZ",),
    "import": ("FOLDER",),
    "export": ("FOLDER/all.gz",),
    "search": ("words",),
    "sweep": ("FOLDER/labelled.jsonl", "--apply"),
    "history": ("mem_01HZZZZZZZZZZZZZZZZZZZZZZZ",),
    "chain": ("fact_01HZZZZZZZZZZZZZZZZZZZZZZZ",),
    "fact add": ("Ana", "role", "Ana leads."),
    "context": ("Write.",),
    "run-trace": ("run",),
    "archive": ("mem_01HZZZZZZZZZZZZZZZZZZZZZZZ",),
    "validate": ("mem_01HZZZZZZZZZZZZZZZZZZZZZZZ",),
    "erase": ("mem_01HZZZZZZZZZZZZZZZZZZZZZZZ", "--yes"),
    "export-pairs": ("FOLDER/pairs",),
    "assign create": ("--client", "Northwind"),
    "assign remove": ("--client", "Northwind"),
    "token": ("--role", "owner"),
    "user create": ("--role", "owner"),
}
"""What a command wants besides an organization and a user."""


def operations() -> Iterator[Any]:
    """Each root field, asked for with something in every argument that it must have."""
    for root in (shape().query_type, shape().mutation_type, shape().subscription_type):
        assert root is not None
        for name, one in root.fields.items():
            arguments: dict[str, Any] = dict(one.args)
            given: dict[str, Any] = {
                arg: of.type for arg, of in arguments.items() if isinstance(of.type, GraphQLNonNull)
            }
            declared = f"({', '.join(f'${arg}: {kind}' for arg, kind in given.items())})" if given else ""
            passed = f"({', '.join(f'{arg}: ${arg}' for arg in given)})" if given else ""
            if f"{root.name}.{name}" == PUBLIC:
                continue
            leaf = isinstance(get_named_type(one.type), GraphQLScalarType)
            document = f"{root.name.lower()}{declared} {{ {name}{passed} {'' if leaf else '{ __typename }'} }}"
            variables = {arg: hostile(kind, "words") for arg, kind in given.items()}
            yield pytest.param(document, variables, id=f"{root.name}.{name}")


@pytest.mark.parametrize(("document", "variables"), list(operations()))
async def test_no_field_answers_nobody(deps: Deps, document: str, variables: dict[str, Any]) -> None:
    before = await nodes(deps.db)
    given: dict[str, Any] = {"variable_values": variables, "context_value": Context(deps, "nobody", caller=None)}
    asked = schema().subscribe if document.startswith("subscription") else schema().execute
    result: Any = await asked(document, **given)
    if hasattr(result, "__aiter__"):
        result = await anext(result)
    assert {error.extensions["code"] for error in result.errors} == {"UNAUTHENTICATED"}
    assert await nodes(deps.db) == before


async def nodes(db: Database) -> Counter[str]:
    """How many there are of each kind."""
    return by_kind(await db.run(ALL))


def by_kind(found: Iterable[Row]) -> Counter[str]:
    return Counter({one["kind"]: one["nodes"] for one in found})


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, set[str]]]:
    """Every command with the names of its parameters."""
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if hasattr(command, "list_commands"):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), {one.name for one in command.params}


COMMANDS = dict(commands(get_group(app)))
SCOPED = [name for name in COMMANDS if name not in OF_NO_ORGANIZATION]


def test_every_command_names_an_organization_or_is_an_operators() -> None:
    assert {name for name, params in COMMANDS.items() if "organization" not in params} == OF_NO_ORGANIZATION


@pytest.fixture
def run(neo4j_environment: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Any]:
    monkeypatch.setenv("GRAPH_MEM_JWT_SECRET", "0123456789abcdef0123456789abcdef")
    (tmp_path / "labelled.jsonl").write_text('{"query": "words", "relevant": ["mem_01HZZZZZZZZZZZZZZZZZZZZZZZ"]}\n')
    (tmp_path / "note.md").write_text("A note.")

    def command(name: str) -> Any:
        given = [one.replace("FOLDER", str(tmp_path)) for one in GIVEN.get(name, ())]
        who = ["--org", "nowhere at all", *(["--user", "nobody"] if "user" in COMMANDS[name] else [])]
        return CliRunner().invoke(app, [*name.split(), *given, *who, "--data-dir", str(tmp_path)])

    return command


@pytest.mark.parametrize("name", SCOPED)
def test_a_command_for_an_organization_that_is_not_there_writes_nothing(
    run: Callable[..., Any], name: str, neo4j_address: Address
) -> None:
    before = counted(neo4j_address)
    done = run(name)
    assert done.exit_code != 0
    assert getattr(done.exception, "code", None) == "NOT_FOUND", done.output
    assert counted(neo4j_address) == before


def counted(address: Address) -> Counter[str]:
    with GraphDatabase.driver(address.uri, auth=(address.user, address.password)) as driver:
        return by_kind(driver.execute_query(ALL).records)


JOBS: dict[str, dict[str, Any]] = {
    "no partition": {"partition": None},
    "another partition": {"partition": "k0"},
    "no record": {"recordId": None},
}
STATE = "MATCH (m:Memory {id: $id}) RETURN m.processing AS processing, COUNT { (m)<-[:PART_OF]-() } AS chunks"


@pytest.mark.parametrize("kind", HANDLERS)
@pytest.mark.parametrize("changed", JOBS.values(), ids=JOBS)
async def test_a_job_that_does_not_say_where_does_nothing(deps: Deps, kind: str, changed: dict[str, Any]) -> None:
    org = await company(deps)
    memory = (await capture.accept(deps, org.owner, NewMemory(text="Ana leads."))).memory
    sibling = (await capture.accept(deps, org.owner, NewMemory(text="Tom follows."))).memory
    await deps.db.run(
        "MATCH (j:Job {recordId: $id}) SET j.kind = $kind, j += $changed", id=memory.id, kind=kind, changed=changed
    )
    await work_off(deps, org.id)
    assert dict((await deps.db.run(STATE, id=memory.id))[0]) == {"processing": "SAVED", "chunks": 0}
    assert dict((await deps.db.run(STATE, id=sibling.id))[0]) == {"processing": "READY", "chunks": 1}


LINES: dict[str, dict[str, Any]] = {
    "no organization": {"org": None},
    "an organization that the archive does not bring": {"org": "org_01HZZZZZZZZZZZZZZZZZZZZZZZ"},
    "no partition": {"partition": None},
    "another partition": {"partition": "k0"},
    "no scope": {"scope": None},
    "another scope": {"scope": "k0"},
    "no level": {"level": None},
    "a level that is none": {"level": "planet"},
    "somebody else's": {"owner": "usr_01HZZZZZZZZZZZZZZZZZZZZZZZ"},
}
MODEL = Placed(Source("hash", 384, "hash"), FIRST)


@pytest.mark.parametrize("kind", ["Memory", "Fact", "Chunk", "Event", "Slot", "Entity"])
async def test_a_restored_row_of_no_place_is_refused_before_anything_is_written(
    deps: Deps, kind: str, tmp_path: Path
) -> None:
    org = await company(deps)
    await capture.accept(deps, org.owner, NewMemory(text="ana@acme.example leads."))
    await facts.save(deps, org.owner, NewFact(subject="Ana", relation="role", statement="Ana leads."))
    await work_off(deps, org.id)
    whole = tmp_path / "whole.gz"
    await exports.export(deps, whole, organization=org.name, model=MODEL)
    lines = list(archive.lines(whole))
    header, body = lines[0], [line for line in lines if isinstance(line, (Node, Edge))]
    assert isinstance(header, Header)
    at = next(n for n, line in enumerate(body) if isinstance(line, Node) and line.kind == kind)
    await wipe(deps.db, org.id)
    before = await nodes(deps.db)
    for name, changed in LINES.items():
        node = body[at]
        assert isinstance(node, Node)
        kept = {key: value for key, value in {**node.properties, **changed}.items() if value is not None}
        forged = tmp_path / f"{name}.gz"
        archive.write(forged, header, [*body[:at], replace(node, properties=kept), *body[at + 1 :]])
        with pytest.raises(ArchiveDamaged, match="at no place"):
            await restores.restore(deps, forged, model=MODEL)
        assert await nodes(deps.db) == before, name
    await restores.restore(deps, whole, model=MODEL)
    assert await nodes(deps.db) > before
