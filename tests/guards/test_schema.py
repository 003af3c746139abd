"""The API is what was promised, what is committed, and described."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from graphql import (
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLSchema,
    Undefined,
    build_schema,
    is_specified_directive,
    is_specified_scalar_type,
)

from graph_mem.api.documents import load_manifest, render_manifest
from graph_mem.api.schema import OPERATIONS, SDL, make_schema

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@pytest.fixture(scope="module")
def schema() -> GraphQLSchema:
    return build_schema(make_schema().as_str())


def test_the_committed_schema_is_the_printed_one() -> None:
    assert (ROOT / SDL).read_text("utf-8") == make_schema().as_str() + "\n"


def test_the_committed_manifest_holds_every_operation() -> None:
    assert (ROOT / OPERATIONS / "manifest.json").read_bytes() == render_manifest(ROOT / OPERATIONS)


def test_a_document_is_named_by_the_bytes_of_its_file() -> None:
    files = [path.read_bytes() for path in (ROOT / OPERATIONS).glob("*.graphql")]
    manifest = load_manifest(ROOT / OPERATIONS / "manifest.json")
    assert manifest.documents == {sha256(content).hexdigest(): content.decode() for content in files}


def test_the_schema_contains_the_contract(schema: GraphQLSchema) -> None:
    contract = build_schema((HERE / "contract.graphql").read_text("utf-8"))
    assert list(missing(contract, schema)) == []


def test_every_element_is_described(schema: GraphQLSchema) -> None:
    assert list(undescribed(schema)) == []


def missing(contract: GraphQLSchema, schema: GraphQLSchema) -> Iterator[str]:
    """What `contract` promises and `schema` does not have, or has in another form."""
    for name, promised in contract.type_map.items():
        if name.startswith("__") or is_specified_scalar_type(promised):
            continue
        found = schema.type_map.get(name)
        if type(found) is not type(promised):
            yield f"type {name}"
        elif isinstance(promised, GraphQLEnumType) and isinstance(found, GraphQLEnumType):
            yield from (f"{name}.{value}" for value in promised.values if value not in found.values)
        elif isinstance(promised, GraphQLInputObjectType) and isinstance(found, GraphQLInputObjectType):
            yield from _missing_inputs(name, promised.fields, found.fields)
        elif isinstance(promised, (GraphQLObjectType, GraphQLInterfaceType)):
            assert isinstance(found, (GraphQLObjectType, GraphQLInterfaceType))
            yield from _missing_fields(name, promised, found)


def _missing_fields(name: str, promised, found) -> Iterator[str]:
    has = {interface.name for interface in found.interfaces}
    yield from (f"{name} implements {one.name}" for one in promised.interfaces if one.name not in has)
    for field, definition in promised.fields.items():
        other = found.fields.get(field)
        if other is None:
            yield f"{name}.{field}"
        elif str(other.type) != str(definition.type):
            yield f"{name}.{field}: {other.type}, promised {definition.type}"
        else:
            yield from _missing_inputs(f"{name}.{field}", definition.args, other.args)


def _missing_inputs(name: str, promised, found) -> Iterator[str]:
    for field, definition in promised.items():
        other = found.get(field)
        if other is None:
            yield f"{name}({field})"
        elif str(other.type) != str(definition.type):
            yield f"{name}({field}): {other.type}, promised {definition.type}"
        elif definition.default_value is not Undefined and other.default_value != definition.default_value:
            yield f"{name}({field}) = {other.default_value}, promised {definition.default_value}"
    required = (field for field, one in found.items() if str(one.type).endswith("!") and one.default_value is Undefined)
    yield from (f"{name}({field}) is required, not promised" for field in required if field not in promised)


def undescribed(schema: GraphQLSchema) -> Iterator[str]:
    for name, type_ in schema.type_map.items():
        if name.startswith("__") or is_specified_scalar_type(type_):
            continue
        if not type_.description:
            yield name
        for field, definition in getattr(type_, "fields", {}).items():
            if not definition.description:
                yield f"{name}.{field}"
            yield from (
                f"{name}.{field}({arg})" for arg, one in getattr(definition, "args", {}).items() if not one.description
            )
        if isinstance(type_, GraphQLEnumType):
            yield from (f"{name}.{value}" for value, one in type_.values.items() if not one.description)
    for directive in schema.directives:
        if not is_specified_directive(directive) and not directive.description:
            yield f"@{directive.name}"
