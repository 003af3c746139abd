"""Proposals on a terminal: as a table, and one after the other with the evidence beside."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Column, Table
from rich.text import Text

from graph_mem.cli.output import Harmless
from graph_mem.core.model import Entity, Fact, Page, Principal, Record, RecordId, is_id
from graph_mem.core.proposals import Decision, Proposal, ProposalState
from graph_mem.errors import GraphMemError
from graph_mem.services import Deps, records, review
from graph_mem.store.reviews import Filter

_PAGE = 100
_SHOWN_CHARACTERS = 600
_SHOWN_SEARCHES = 3

Named = Mapping[str, Record | Entity]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one proposal: `done` is the state it is in now, the error it met, or None for one skipped."""

    id: str
    done: str | None


async def waiting(deps: Deps, principal: Principal, filter: Filter, *, most: int) -> list[Proposal]:
    """At most `most` proposals of the queue, oldest first."""
    found: list[Proposal] = []
    after = None
    while len(found) < most:
        page = await review.queue(deps, principal, filter, Page(_PAGE, after))
        found += page[:_PAGE]
        if len(page) <= _PAGE:
            break
        after = (found[-1].id,)
    return found[:most]


async def named(deps: Deps, principal: Principal, proposals: Sequence[Proposal]) -> dict[str, Record | Entity]:
    """Everything that `proposals` name and the caller may see."""
    ids = {id for one in proposals for id in (*one.subject_ids, *one.evidence_ids)}
    found: dict[str, Record | Entity] = {
        **await records.by_ids(deps, principal, [RecordId(id) for id in ids if is_id(id, "mem", "fact")])
    }
    for id in sorted(id for id in ids if is_id(id, "ent")):
        entity = await records.entity(deps, principal, id)
        if entity is not None:
            found[id] = entity
    return found


def table(proposals: Sequence[Proposal], things: Named) -> Table:
    """One line for each proposal."""
    view = Table(Column("id", no_wrap=True), "would", "what", "score", "why", "filed")
    for one in proposals:
        what = "\n".join(_line(things.get(id), id) for id in one.subject_ids)
        view.add_row(one.id, _would(one), what, f"{one.score:.2f}", one.reason, f"{one.proposed_at:%Y-%m-%d}")
    return view


async def ask(
    deps: Deps, principal: Principal, proposals: Sequence[Proposal], console: Console, read: Callable[[str], str]
) -> list[Outcome]:
    """Ask about each proposal in turn and carry out the answers; `q` leaves the rest."""
    things = await named(deps, principal, proposals)
    retrievals = await review.retrievals(deps, principal, proposals)
    outcomes: list[Outcome] = []
    for number, (one, searches) in enumerate(zip(proposals, retrievals, strict=True), start=1):
        console.print(Harmless(_view(one, things, searches, title=f"{number} of {len(proposals)}  {_would(one)}")))
        answer = _answer(read)
        if answer == "q":
            break
        outcomes.append(await _carry_out(deps, principal, one, answer))
        console.print(Text(outcomes[-1].done or "skipped", style="dim"))
    return outcomes


def _answer(read: Callable[[str], str]) -> str:
    """One of k, r, s, q; asked again for anything else."""
    while True:
        answer = read("[k]eep, [r]evert, [s]kip, [q]uit")[:1].casefold()
        if answer and answer in "krsq":
            return answer


async def _carry_out(deps: Deps, principal: Principal, one: Proposal, answer: str) -> Outcome:
    if answer == "s":
        return Outcome(one.id, None)
    decision = Decision.KEEP if answer == "k" else Decision.REVERT
    try:
        decided = await review.decide(deps, principal, one.id, decision, expected_version=one.version)
    except GraphMemError as problem:
        return Outcome(one.id, f"{problem.code}: {problem.message}")
    return Outcome(one.id, decided.state.value)


def _view(one: Proposal, things: Named, searches: Sequence[str], *, title: str) -> Panel:
    numbers = Table.grid(padding=(0, 2))
    for name, value in one.signals.items():
        numbers.add_row(Text(name, style="dim"), f"{value:g}")
    sides = Table.grid(padding=(0, 3), expand=True)
    sides.add_column(ratio=3)
    sides.add_column(ratio=2)
    sides.add_row(Group(*(_whole(things.get(id), id) for id in one.subject_ids)), Group(one.reason, one.gate, numbers))
    evidence = [id for id in one.evidence_ids if id not in one.subject_ids]
    cited = [Text("evidence", style="dim"), *(_whole(things.get(id), id) for id in evidence)] if evidence else []
    if searches:
        cited.append(Text.assemble(("counted from  ", "dim"), ", ".join(searches[:_SHOWN_SEARCHES])))
    return Panel(Group(sides, *cited), title=title, subtitle=one.id, title_align="left", subtitle_align="right")


def _would(one: Proposal) -> str:
    verb = one.kind.value.replace("_", " ").lower()
    to = one.change.get("to")
    state = "" if one.state is ProposalState.PENDING else f" ({one.state.value.lower().replace('_', ' ')})"
    return f"{verb} to {to}{state}" if to else f"{verb}{state}"


def _line(thing: Record | Entity | None, id: str) -> str:
    return _words(thing, id).replace("\n", " ")[:70]


def _whole(thing: Record | Entity | None, id: str) -> Text:
    words = _words(thing, id)
    more = " ..." if len(words) > _SHOWN_CHARACTERS else ""
    label = f"{thing.label}  " if thing is not None else ""
    return Text.assemble((label, "bold"), (id, "dim"), "\n", words[:_SHOWN_CHARACTERS], more)


def _words(thing: Record | Entity | None, id: str) -> str:
    match thing:
        case None:
            return f"{id} (gone)"
        case Entity():
            return ", ".join((thing.name, *thing.aliases))
        case Fact():
            return f"{thing.subject} / {thing.relation}: {thing.statement}"
        case _:
            return thing.text or thing.id
