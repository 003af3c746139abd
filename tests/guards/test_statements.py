"""Every statement is scoped, none is built from what a caller says, and the server accepts all of them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from neo4j.exceptions import ClientError

import graph_mem
from graph_mem.store.db import Database
from graph_mem.store.visibility import visible
from tests.guards.statements import Statement, exemptions, modules, source, statements, without_layer_one

EVERY = tuple(statements())
RUNNERS = {"row", "rows", "run", "_one"}
FROM_FILES = {"migrate"}
"""Runs the statements of the committed files in `schema/`."""
AT_EVERY_START = {"migrate", "server"}
"""DDL and questions to the server, which cannot be explained beside others; the `database` fixture runs them."""
MANY_FORMS = {one.name for one in EVERY if one.name.startswith("search.MEANING[")} - {
    "search.MEANING[passages]",
    "search.MEANING[passages+scope+kind+label+held+created+occurred]",
}
"""Of one statement with and without each of its filters the least and the most: planning one takes a second."""
CYPHER = ("MATCH (", "MERGE (", "CREATE (", "UNWIND $", "RETURN ")


@pytest.fixture(scope="session", params=EVERY, ids=lambda one: one.name)
def statement(request: pytest.FixtureRequest) -> Statement:
    return request.param


def test_the_guard_finds_the_statements() -> None:
    assert len(EVERY) > 200
    found = {one.name for one in EVERY}
    assert {"memories.BY_ID", "search.WORDS", "search.MEANING[passages]", "facts.LOCK_SLOT"} <= found


def test_the_predicate_is_recognized() -> None:
    one = Statement("x", f"MATCH (m:Memory {{id: $id}})-[:STATES]->(f:Fact) WHERE {visible('m')} RETURN m.id")
    assert one.records == {"m", "f"}
    assert one.checked == {"m"}
    assert one.opened == "MATCH (m:Memory {id: $id})-[:STATES]->(f:Fact) WHERE true RETURN m.id"


@pytest.mark.parametrize(
    ("text", "records"),
    [
        ("MATCH (n) WHERE n.id = $id RETURN n", {"n"}),
        ("MATCH (u:User)-[:MEMBER_OF]->(o:Organization) RETURN u", set[str]()),
        ("MATCH (a)-[r:SUPERSEDES]->(b) RETURN r", {"a", "b"}),
        ("CALL db.index.fulltext.queryNodes('x', $q) YIELD node AS n, score RETURN n", {"n"}),
        ("CALL db.index.fulltext.queryNodes('x', $q) YIELD node RETURN node", {"node"}),
        ("MATCH (:Memory {id: $id})<-[:PINS]-(p:Pin) RETURN p", {":Memory", "p"}),
        ("MATCH (m:Memory) WHERE EXISTS { (m)<-[:PINS]-() } RETURN m", {"m", "()"}),
    ],
)
def test_nodes_that_may_be_records_are_found(text: str, records: set[str]) -> None:
    assert Statement("x", text).records == records


def test_every_record_of_a_statement_is_checked_or_exempt(statement: Statement) -> None:
    exempt = exemptions().get(statement.name.partition("[")[0], {})
    assert statement.records - statement.checked - set(exempt) == set()


def test_every_exemption_stands_in_its_statement() -> None:
    """An exemption names what scopes the node instead; once that goes, or the predicate comes, it must go too."""
    by_name: dict[str, list[Statement]] = {}
    for one in EVERY:
        by_name.setdefault(one.name.partition("[")[0], []).append(one)
    stale = [
        f"{name}.{alias}"
        for name, exempt in exemptions().items()
        for alias, line in exempt.items()
        if not any(
            line.partition(" -- ")[0].casefold() in one.text.casefold() and alias in one.records - one.checked
            for one in by_name.get(name, [])
        )
    ]
    assert stale == []


def test_every_exemption_has_a_reason() -> None:
    assert [line for lines in exemptions().values() for line in lines.values() if not line.partition(" -- ")[2]] == []


@pytest.mark.parametrize("module", [one for one in modules() if one not in FROM_FILES])
def test_no_statement_is_built_at_run_time(module: str) -> None:
    assert list(built_at_run_time(source(module))) == []


@pytest.mark.parametrize(
    "body",
    [
        "async def f(tx, label):\n    await rows(tx, f'MATCH (n:{label}) RETURN n')",
        "async def f(tx, label):\n    await rows(tx, 'MATCH (n:' + label + ') RETURN n')",
        "async def f(tx, label):\n    await rows(tx, 'MATCH (n:%s) RETURN n' % label)",
        "async def f(tx, label):\n    await rows(tx, 'MATCH (n:{}) RETURN n'.format(label))",
        "async def f(tx, text):\n    await tx.run(text)",
        "async def f(tx, text):\n    statement = 'MATCH (n) ' + text\n    await rows(tx, statement)",
        "async def f(tx, names):\n    await rows(tx, SAVED.replace('x', names))",
    ],
)
def test_the_guard_sees_a_statement_that_is_built(body: str) -> None:
    assert list(built_at_run_time(ast.parse(body))) != []


def test_cypher_is_in_the_store_alone() -> None:
    root = Path(graph_mem.__path__[0])
    found = [
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if path.parent.name != "store"
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.lstrip().startswith(CYPHER)
    ]
    assert found == []


async def test_the_server_accepts_every_statement(database: Database) -> None:
    refused: list[str] = []
    async with database.driver.session(database=database.name) as session:
        for one in EVERY:
            if one.name.partition(".")[0] in AT_EVERY_START or one.name in MANY_FORMS:
                continue
            version, _, rest = one.text.partition("\n") if one.text.startswith("CYPHER ") else ("", "", one.text)
            try:
                result = await session.run(f"{version} EXPLAIN {rest}")
                await result.consume()
            except ClientError as error:
                refused.append(f"{one.name}: {error.message}")
    assert refused == []


def test_opening_a_statement_leaves_the_rest_of_it() -> None:
    for one in EVERY:
        assert (one.opened == one.text) is (not one.checked)
        assert without_layer_one(one.opened) == one.opened


def built_at_run_time(module: ast.Module) -> Iterator[str]:
    """Where a statement is anything but a constant, a choice of constants, or a parameter of type `LiteralString`."""
    for function in ast.walk(module):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            known = {*_literal_parameters(function), *_chosen(function)}
            for call in ast.walk(function):
                if isinstance(call, ast.Call) and _runs(call) and not _constant(_statement_of(call), known):
                    yield f"{function.name}:{call.lineno}"
            if _says_literal(function.returns):
                yield from (
                    f"{function.name}:{piece.lineno}"
                    for piece in ast.walk(function)
                    if isinstance(piece, ast.FormattedValue) and not _constant(piece.value, known)
                )
    for statement in module.body:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
            yield from (
                f"line {piece.lineno}"
                for piece in ast.walk(statement.value)
                if isinstance(piece, ast.FormattedValue) and not _constant(piece.value, set())
            )


def _runs(call: ast.Call) -> bool:
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    return name in RUNNERS and bool(call.args) and not (isinstance(call.func, ast.Name) and name == "run")


def _statement_of(call: ast.Call) -> ast.expr:
    """The second argument, after the transaction; the first of a method."""
    wanted = 0 if isinstance(call.func, ast.Attribute) else 1
    if isinstance(call.func, ast.Name) and call.func.id == "_one":
        wanted = next((at for at, one in enumerate(call.args) if isinstance(one, ast.Name) and one.id.isupper()), 1)
    return call.args[wanted]


def _constant(value: ast.expr, known: set[str]) -> bool:
    match value:
        case ast.Constant(value=str()):
            return True
        case ast.Name(id=name):
            return name.lstrip("_").isupper() or name in known
        case ast.Attribute(attr=name):
            return name.isupper()
        case ast.Subscript(value=table):
            return _constant(table, known)
        case ast.IfExp(body=one, orelse=other):
            return _constant(one, known) and _constant(other, known)
        case ast.JoinedStr(values=values):
            return all(_constant(one.value, known) for one in values if isinstance(one, ast.FormattedValue))
        case ast.Call(func=ast.Name(id="Query"), args=[inner, *_]):
            return _constant(inner, known)
        case ast.Call(func=ast.Name(id=name), args=args):
            return name in _literal_functions() and all(_constant(one, known) for one in args)
        case _:
            return False


def _literal_functions() -> set[str]:
    """Functions of the store that return a `LiteralString`, which the type checker holds them to."""
    return {
        node.name
        for module in modules()
        for node in source(module).body
        if isinstance(node, ast.FunctionDef) and _says_literal(node.returns)
    }


def _says_literal(annotation: ast.expr | None) -> bool:
    return isinstance(annotation, ast.Name) and annotation.id == "LiteralString"


def _literal_parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    given = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    return {one.arg for one in given if _says_literal(one.annotation)}


def _chosen(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Local names that only ever hold constants: a choice, a loop over constants, a piece of type `LiteralString`."""
    held: dict[str, bool] = {}
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                held[name] = held.get(name, True) and _constant(value, set())
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                held[name] = held.get(name, True) and (
                    _says_literal(annotation) or "LiteralString" in ast.dump(annotation)
                )
            case ast.For(target=target, iter=iterated):
                for name in [one.id for one in ast.walk(target) if isinstance(one, ast.Name)]:
                    held[name] = held.get(name, True) and (_constant(iterated, set()) or _typed(function, iterated))
            case _:
                continue
    return {name for name, constant in held.items() if constant}


def _typed(function: ast.FunctionDef | ast.AsyncFunctionDef, iterated: ast.expr) -> bool:
    """Whether a local table that is looped over has `LiteralString` in its annotation."""
    return isinstance(iterated, ast.Name) and any(
        isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and node.target.id == iterated.id
        and "LiteralString" in ast.dump(node.annotation)
        for node in ast.walk(function)
    )


def test_no_statement_joins_nodes_of_either_label_by_a_value(statement: Statement) -> None:
    """Neo4j's planner breaks on it where few nodes are: EXISTS, or UNWIND of the values, does not."""
    joined = re.findall(r"^MATCH \(\w+:\w+\|\w+ ?\{\w+: (\w+)[.\[]", statement.text, flags=re.MULTILINE)
    assert [name for name in joined if not re.search(rf"UNWIND \S+ AS {name}\b", statement.text)] == []
