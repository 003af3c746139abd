"""The guard by properties: what it measures is what a naive expansion counts, in time that does not explode."""

import time
from typing import Any

import pytest
from graphql import FieldNode, FragmentDefinitionNode, FragmentSpreadNode, GraphQLError, build_schema, parse
from graphql.language import DocumentNode, OperationDefinitionNode, SelectionSetNode
from hypothesis import given
from hypothesis import strategies as st

from graph_mem.api.cost import CostModel
from graph_mem.api.guard import Guard, Memory, Surveyor
from graph_mem.errors import QueryTooComplex

NAMES = ("a", "b", "c")


def selections(fragments: int) -> st.SearchStrategy[str]:
    """A selection set that may spread the fragments numbered below `fragments`."""
    leaf = st.sampled_from([*NAMES, *(f"x: {name}" for name in NAMES)])
    spread = st.sampled_from([f"...f{number}" for number in range(fragments)]) if fragments else leaf
    return st.recursive(
        st.lists(leaf | spread, min_size=1, max_size=3).map(lambda items: "{" + " ".join(items) + "}"),
        lambda inner: st.lists(st.tuples(leaf, inner).map(" ".join) | spread, min_size=1, max_size=3).map(
            lambda items: "{" + " ".join(items) + "}"
        ),
        max_leaves=6,
    )


@st.composite
def documents(draw: st.DrawFn) -> DocumentNode:
    """An operation over up to four fragments, each of which spreads earlier ones only."""
    count = draw(st.integers(0, 4))
    texts = [f"fragment f{number} on T {draw(selections(number))}" for number in range(count)]
    return parse(" ".join([draw(selections(count)), *texts]))


def expanded(document: DocumentNode) -> tuple[int, int, int]:
    """Depth, aliases and selections of the operation, by following every spread."""
    fragments = {node.name.value: node for node in document.definitions if isinstance(node, FragmentDefinitionNode)}

    def walk(selection_set: SelectionSetNode | None) -> tuple[int, int, int]:
        depth = aliases = total = 0
        for node in selection_set.selections if selection_set else ():
            total += 1
            if isinstance(node, FieldNode):
                inner = walk(node.selection_set)
                depth, aliases = max(depth, inner[0] + 1), aliases + (node.alias is not None)
            else:
                assert isinstance(node, FragmentSpreadNode)
                inner = walk(fragments[node.name.value].selection_set)
                depth = max(depth, inner[0])
            aliases, total = aliases + inner[1], total + inner[2]
        return depth, aliases, total

    operation = document.definitions[0]
    assert isinstance(operation, OperationDefinitionNode)
    return walk(operation.selection_set)


@given(documents())
def test_measures_are_those_of_the_expanded_document(document: DocumentNode) -> None:
    operation = document.definitions[0]
    assert isinstance(operation, OperationDefinitionNode)
    shape = Surveyor(document, max_nesting=64).measure(operation.selection_set)
    assert (shape.depth, shape.aliases, shape.selections) == expanded(document)


@pytest.mark.parametrize("spreads", [2, 5])
@pytest.mark.parametrize("chain", [10, 20, 40])
def test_time_does_not_grow_with_what_fragments_expand_to(chain: int, spreads: int) -> None:
    texts = [f"fragment f{number} on T {{ {f'...f{number + 1} ' * spreads} }}" for number in range(chain)]
    document = parse("{ ...f0 } " + " ".join(texts) + f" fragment f{chain} on T {{ a }}")
    started = time.perf_counter()
    with pytest.raises(QueryTooComplex):
        Guard().survey(document)
    assert time.perf_counter() - started < 0.05


def test_fragment_within_itself_is_refused_before_anything_follows_it() -> None:
    with pytest.raises(GraphQLError, match="within itself"):
        Guard().survey(parse("{...a} fragment a on T {...b} fragment b on T {...a}"))


def test_fragment_that_no_operation_uses_is_measured_too() -> None:
    unused = " ".join(f"fragment f{number} on T {{...f{number + 1} ...f{number + 1}}}" for number in range(20))
    with pytest.raises(QueryTooComplex):
        Guard().survey(parse("{a} " + unused + " fragment f20 on T {a}"))


SCHEMA = build_schema(
    """
    type Query { items(first: Int = 20): Connection! nodes(ids: [ID!]!): [Item]! item: Item chain: [Item!]! }
    type Connection { edges: [Edge!]! nodes: [Item!]! total: Int }
    type Edge { node: Item! }
    type Item { id: ID! items(first: Int = 20): Connection! chain: [Item!]! }
    """
)


def cost(query: str, variables: dict[str, Any] | None = None) -> int:
    document = parse(query)
    operation = document.definitions[0]
    assert isinstance(operation, OperationDefinitionNode)
    return CostModel(SCHEMA, document, variables or {}).of(operation)


def test_cost_of_a_page_is_its_size_times_what_is_in_it() -> None:
    assert cost("{items(first:10){nodes{id}}}") == 1 + 10 * 1
    assert cost("{items(first:10){edges{node{id}}}}") == 1 + 10 * 2
    assert cost("{items{nodes{items(first:5){nodes{id}}}}}") == 1 + 20 * (1 + 1 + 5 * 1)


def test_cost_of_nodes_is_per_id() -> None:
    assert cost("query($i:[ID!]!){nodes(ids:$i){items(first:10){nodes{id}}}}", {"i": ["x"] * 7}) == 1 + 7 * (1 + 10)


def test_cost_takes_a_list_without_a_page_size_as_five() -> None:
    assert cost("{chain{chain{chain{id}}}}") == 1 + 5 * (1 + 5 * (1 + 5 * 1))


@pytest.mark.parametrize("value", [None, True, "x", 1.5, [1], {"a": 1}])
def test_cost_of_a_page_size_that_is_no_number_is_that_of_a_usual_page(value: object) -> None:
    assert cost("query($n:Int){items(first:$n){nodes{id}}}", {"n": value}) == 1 + 20


@given(st.integers(1, 100), st.integers(1, 100))
def test_cost_never_falls_when_a_page_grows(one: int, other: int) -> None:
    query = "query($n:Int){items(first:$n){nodes{items(first:$n){nodes{id}}}}}"
    low, high = sorted([one, other])
    assert cost(query, {"n": low}) <= cost(query, {"n": high})


@given(st.lists(st.text(max_size=30), max_size=60))
def test_memory_of_documents_is_bounded_in_number_and_in_characters(texts: list[str]) -> None:
    memory, known = Memory(documents=5, chars=60), Guard().survey(parse("{a}"))
    for text in texts:
        memory.put(text, known)
    held = {text for text in texts if memory.get(text)}
    assert len(held) <= 5
    assert sum(map(len, held)) <= 60
    if texts:
        assert memory.get(texts[-1]) is known
