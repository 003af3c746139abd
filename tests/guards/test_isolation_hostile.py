"""What a caller says is data: no string becomes a statement, and none of it stands in the log."""

import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest
from graphql import GraphQLInputObjectType, GraphQLNonNull, GraphQLScalarType, get_named_type, is_list_type

from graph_mem.api.session import Context
from graph_mem.core.model import Principal
from graph_mem.services import Deps
from graph_mem.store.db import Tx, rows
from tests.guards.matrix import Row, ask, schema, shape, table
from tests.guards.world import World
from tests.people import Company, company, work_off

HOSTILE = (
    "}) DETACH DELETE n //",
    "'}) MATCH (n) DETACH DELETE n //",
    '"}) CREATE (:Hacked) //',
    "`) DETACH DELETE n //`",
    "line\n}) DETACH DELETE n //\nline",
    "*:* OR keys:* ) OR (",
    "\\u0027 OR 1=1 //",
)
STRINGS = ("ID", "String", "JSON")
SAVE = "mutation($t: String!) { captureMemory(input: { text: $t }) { memory { id text } } }"
FIND = "query($t: String!) { search(input: { text: $t }) { hits { rank } } }"
JOURNEY = (
    SAVE,
    FIND,
    'mutation($t: String!) { saveFact(input: { subject: $t, relation: "is", statement: $t }) { fact { id } } }',
    'query($t: String!) { context(input: { runId: "log", instruction: $t, semanticTail: true }) { prefix { hash } } }',
    "query($t: String!) { memories(labels: [$t]) { totalCount } }",
)
COUNTED = "MATCH (n) WHERE n.org = $org RETURN count(n) AS nodes"
HACKED = "MATCH (n:Hacked) RETURN count(n) AS hacked"
FREE = {
    "Mutation.captureMemory", "Mutation.saveFact", "Mutation.savePolicy", "Mutation.setVariable", "Mutation.addScratch",
    "Mutation.updateVocabulary", "Query.context", "Query.search",
}  # fmt: skip
"""Where such a string is as good as any other, and is kept or looked for."""


def documents() -> Iterator[tuple[str, str, dict[str, str]]]:
    """For each root field an operation with a variable for each argument, and the types of these."""
    for kind, type_ in (("query", shape().query_type), ("mutation", shape().mutation_type)):
        assert type_ is not None
        for name, one in type_.fields.items():
            if not one.args:
                continue
            declared = ", ".join(f"${arg}: {given.type}" for arg, given in one.args.items())
            passed = ", ".join(f"{arg}: ${arg}" for arg in one.args)
            leaf = isinstance(get_named_type(one.type), GraphQLScalarType)
            text = f"{kind}({declared}) {{ {name}({passed}) {'' if leaf else '{ __typename }'} }}"
            yield f"{type_.name}.{name}", text, {arg: given.type for arg, given in one.args.items()}  # pyright: ignore[reportReturnType]


def hostile(type_: Any, text: str) -> Any:
    """A value for `type_` with `text` in every string, and nothing else that is not required."""
    inner = type_.of_type if isinstance(type_, GraphQLNonNull) else type_
    if is_list_type(inner):
        return [hostile(inner.of_type, text)]
    if isinstance(inner, GraphQLInputObjectType):
        return {
            name: hostile(one.type, text)
            for name, one in inner.fields.items()
            if isinstance(one.type, GraphQLNonNull) or get_named_type(one.type).name in STRINGS
            or isinstance(get_named_type(one.type), GraphQLInputObjectType)
        }  # fmt: skip
    if isinstance(inner, GraphQLScalarType):
        return {"ID": text, "String": text, "JSON": {text: text}, "Int": 1, "Float": 0.5, "Boolean": False}.get(
            inner.name
        )
    return next(iter(inner.values))


@pytest.fixture(scope="module")
async def org(deps: Deps) -> Company:
    return await company(deps)


async def counted(deps: Deps, org: Company) -> tuple[int, int]:
    async def work(tx: Tx) -> tuple[int, int]:
        nodes, hacked = await rows(tx, COUNTED, org=org.id), await rows(tx, HACKED)
        return nodes[0]["nodes"], hacked[0]["hacked"]

    return await deps.db.read(work)


async def run(deps: Deps, who: Principal, document: str, variables: dict[str, Any]) -> list[str]:
    """The codes of all errors."""
    context = Context(deps, "hostile", caller=who)
    result = await schema().execute(document, variable_values=variables, context_value=context)
    return [(error.extensions or {}).get("code", "") for error in result.errors or ()]


@pytest.mark.parametrize(
    ("name", "document", "types"), list(documents()), ids=lambda one: one if isinstance(one, str) else ""
)
async def test_a_hostile_string_is_data_or_refused(
    deps: Deps, org: Company, name: str, document: str, types: dict[str, Any]
) -> None:
    before, hacked = await counted(deps, org)
    for text in HOSTILE:
        variables = {arg: hostile(type_, text) for arg, type_ in types.items()}
        codes = await run(deps, org.owner, document, variables)
        assert set(codes) <= {"BAD_USER_INPUT", "NOT_FOUND", "CONFLICT", "FORBIDDEN"}, (text, codes)
    after, then = await counted(deps, org)
    assert after >= before or name == "Mutation.endRun"
    assert then == hacked
    if name not in FREE and name.startswith("Query."):
        assert after == before


async def test_hostile_texts_are_kept_as_they_are(deps: Deps, org: Company) -> None:
    for text in HOSTILE:
        answer = await _answer(
            deps,
            org,
            "mutation($t: String!) { captureMemory(input: { text: $t, title: null }) { memory { id text } } }",
            t=text,
        )
        assert answer["captureMemory"]["memory"]["text"] == text
    await work_off(deps, org.id)
    found = await _answer(
        deps, org, "query($t: String!) { search(input: { text: $t }) { hits { rank } } }", t=HOSTILE[0]
    )
    assert found["search"]["hits"]


async def _answer(deps: Deps, org: Company, document: str, **variables: Any) -> dict[str, Any]:
    context = Context(deps, "hostile", caller=org.owner)
    result = await schema().execute(document, variable_values=variables, context_value=context)
    assert not result.errors, result.errors
    assert result.data is not None
    return result.data


async def test_the_log_of_a_journey_holds_no_content(world: World, caplog: pytest.LogCaptureFixture) -> None:
    secret = "Xylophonia"
    with caplog.at_level(logging.DEBUG):
        deps, who = world.deps, world.people["owner"]
        for text in JOURNEY:
            await run(deps, who, text, {"t": f"{secret} likes {secret}"})
        await work_off(deps, world.org.id)
        for row in _some_reads():
            await ask(world, "stranger", row, {"id": world.ids["private"]["memory"]})
    own = [record for record in caplog.records if record.name.startswith("graph_mem")]
    written = "\n".join(f"{record.getMessage()} {record.__dict__}" for record in own)
    assert secret not in written
    assert re.search(r"eyJ[\w-]+\.[\w-]+\.[\w-]+", written) is None


def _some_reads() -> list[Row]:
    return [row for row in table() if row.name in ("Query.memory", "Query.history")]
