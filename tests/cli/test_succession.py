"""How chains are drawn."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from rich.console import Console

from graph_mem.cli.succession import tree
from graph_mem.core.model import (
    SUPERSEDES,
    Fact,
    Interval,
    OrganizationId,
    Place,
    RecordId,
    Relation,
    RelationState,
    Scope,
    Standing,
    UserId,
)
from graph_mem.core.supersession import chain

NAMES = {"ana": "Ana Lima"}
START = datetime(2026, 1, 1, tzinfo=UTC)
PLACE = Place(OrganizationId("org"), Scope())


def record(name: str, day: int) -> Fact:
    at = START + timedelta(days=day)
    standing = Standing.SUPERSEDED
    return Fact(RecordId(name), PLACE, "s", "r", name, standing, 1, 1.0, at, Interval(at, at), author=UserId("u"))


def link(newer: str, older: str, state: RelationState = RelationState.ACTIVE) -> Relation:
    return Relation(
        f"{newer}{older}",
        SUPERSEDES,
        RecordId(newer),
        RecordId(older),
        state,
        UserId("ana"),
        START,
        "why",
        retires=True,
    )


def drawn(*links: Relation) -> list[str]:
    names = sorted({name for one in links for name in (one.from_id, one.to_id)})
    console = Console(width=160, no_color=True)
    with console.capture() as captured:
        made = chain([record(name, day) for day, name in enumerate(names)], links)
        console.print(tree(made, around=RecordId("a"), names=NAMES))
    return [line.partition("  superseded")[0].rstrip() for line in captured.get().splitlines()]


def test_a_chain_is_a_line_from_the_newest_to_the_oldest() -> None:
    by = "↓ replaced 2026-01-01 00:00 by Ana Lima: why"
    assert drawn(link("b", "a"), link("c", "b"), link("d", "c")) == ["d", by, "c", by, "b", by, "▸ a"]


def test_what_replaced_several_at_once_branches() -> None:
    lines = drawn(link("b", "a"), link("d", "b"), link("d", "c"))
    said = "  replaced 2026-01-01 00:00 by Ana Lima: why"
    assert lines == ["d", "├── c", f"│   {said}", "└── b", f"    {said}", f"    ↓ {said.strip()}", "    ▸ a"]


def test_a_fork_that_joins_again_names_the_common_record_once() -> None:
    lines = drawn(link("b", "a"), link("c", "a"), link("d", "b"), link("d", "c"))
    assert lines[0] == "d"
    assert sum("▸ a" in line for line in lines) == 1
    assert sum("as above" in line for line in lines) == 1


def test_a_retracted_link_is_told_below() -> None:
    lines = drawn(link("b", "a", RelationState.RETRACTED))
    assert [line.strip("├└─ ") for line in lines][-1].startswith("b does not replace a")


def test_a_long_chain_does_not_recurse() -> None:
    names = [f"n{n:04}" for n in range(2000)]
    assert len(drawn(*(link(newer, older) for older, newer in pairwise(names)))) == 2 * 2000 - 1
