"""The analysts' saved queries and style in schema/browser: each runs, is documented, and finds what it says."""

import re
from pathlib import Path
from typing import Any, LiteralString, cast

import pytest

from graph_mem.core.model import RecordId
from graph_mem.services import Deps, capture, facts
from graph_mem.services.capture import NewMemory
from graph_mem.services.facts import NewFact
from graph_mem.services.relations import NewRelation
from tests.people import Company, company, work_off

FOLDER = Path(__file__).parents[2] / "schema" / "browser"
QUERIES = sorted(FOLDER.glob("*.cypher"))
_PARAMETER = re.compile(r"\$(\w+)")
_DOCUMENTED = re.compile(r":param (\w+) => ")


def text_of(name: str) -> str:
    return (FOLDER / f"{name}.cypher").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
async def example(deps: Deps) -> dict[str, Any]:
    """An organization with a superseded fact and memory, a private note and a copy; the parameters for every query."""
    org: Company = await company(deps)
    source = (await capture.accept(deps, org.owner, NewMemory(text="Northwind GmbH raised the rate."))).memory
    old = (await capture.accept(deps, org.owner, NewMemory(text="We ship on Friday.", label="decision"))).memory
    await work_off(deps, org.id)
    links = (NewRelation("SUPERSEDES", old.id, "moved"),)
    new = NewMemory(text="We ship on Monday.", label="decision", relations=links)
    await capture.accept(deps, org.owner, new)
    for text, private in (("Mine alone.", True), ("Twice.", False), ("Twice.", False)):
        await capture.accept(deps, org.owner, NewMemory(text=text, private=private))
    ids: list[RecordId] = []
    for n in range(3):
        said = NewFact(subject="Northwind", relation="rate", statement=f"Northwind pays {n}.", source_ids=(source.id,))
        saved = await facts.save(deps, org.owner, said)
        assert saved.fact
        ids.append(saved.fact.id)
    await work_off(deps, org.id)
    return {
        "org": org.id,
        "id": ids[0],
        "memory": old.id,
        "days": 7,
        "runId": "run-1",
        "subject": "Northwind",
        "name": "Northwind GmbH",
        "at": "2300-01-01T00:00:00Z",
        "dimension": 384,
    }


async def run(deps: Deps, name: str, given: dict[str, Any]) -> list[dict[str, Any]]:
    query = text_of(name)
    wanted = {parameter: given[parameter] for parameter in _PARAMETER.findall(query)}
    return [dict(row) for row in await deps.db.run(cast("LiteralString", query), **wanted)]


@pytest.mark.parametrize("name", [path.stem for path in QUERIES])
async def test_a_saved_query_runs_and_names_its_parameters(deps: Deps, example: dict[str, Any], name: str) -> None:
    query = text_of(name)
    assert query.startswith("// ")
    assert set(_DOCUMENTED.findall(query)) == set(_PARAMETER.findall(query))
    found = await run(deps, name, example)
    if name.startswith("audit_"):
        assert not [row for row in found if example["id"] in str(row) or example["memory"] in str(row)]


async def test_the_chain_of_a_record_has_all_its_links_and_reasons(deps: Deps, example: dict[str, Any]) -> None:
    paths = [row["path"] for row in await run(deps, "chain", example)]
    assert max(len(path.relationships) for path in paths) == 2
    table = await run(deps, "chain_table", {**example, "id": example["memory"]})
    assert [(row["what"], row["standing"], row["why"]) for row in table] == [
        ("We ship on Friday.", "SUPERSEDED", "moved"),
        ("We ship on Monday.", "CURRENT", None),
    ]


async def test_what_changed_and_why_is_told(deps: Deps, example: dict[str, Any]) -> None:
    replaced = await run(deps, "who_replaced_what", example)
    assert {(row["was"], row["now"]) for row in replaced} == {
        ("We ship on Friday.", "We ship on Monday."),
        ("Northwind pays 0.", "Northwind pays 1."),
        ("Northwind pays 1.", "Northwind pays 2."),
    }
    changes = {row["change"]: row["times"] for row in await run(deps, "changed_lately", example)}
    assert changes["superseded"] == 3
    assert changes["folded"] == 1
    why = await run(deps, "why_changed", example)
    assert all(row["newSources"] == ["Northwind GmbH raised the rate."] for row in why)


async def test_the_overview_counts_private_records_and_shows_none(deps: Deps, example: dict[str, Any]) -> None:
    found = await run(deps, "overview", example)
    private = [row for row in found if row["whose"] == "private"]
    assert [(row["kind"], row["records"], row["owners"]) for row in private] == [("memory", 1, 1)]
    assert "Mine alone" not in str(found)


async def test_slots_and_what_held_are_found(deps: Deps, example: dict[str, Any]) -> None:
    (row,) = await run(deps, "most_revised", example)
    assert (row["revisions"], row["now"]) == (3, "Northwind pays 2.")
    held = await run(deps, "held_then", example)
    assert [row["statement"] for row in held] == ["Northwind pays 2."]
    assert len([row for row in await run(deps, "slot", example) if row["current"]]) == 1
    (copy,) = await run(deps, "copies", example)
    assert (copy["what"], copy["copies"]) == ("Twice.", 1)


def test_every_kind_of_node_that_analysts_meet_has_a_caption() -> None:
    style = (FOLDER / "style.grass").read_text(encoding="utf-8")
    assert style.count("{\n") + style.count(" { ") == len(re.findall(r"\}\s*$", style, re.MULTILINE))
    styled = set(re.findall(r"^node\.(\w+) \{[^}]*caption: \"[^\"]*\{\w+\}[^\"]*\"", style, re.MULTILINE))
    assert styled >= {"Memory", "Fact", "Slot", "Entity", "Chunk", "Version", "RunTrace", "User"}
    assert "relationship.SUPERSEDES" in style
