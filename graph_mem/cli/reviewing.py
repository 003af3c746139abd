"""Proposals on a terminal: as a table, and one after the other with the evidence beside."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Column, Table
from rich.text import Text

from graph_mem.cli.output import Harmless
from graph_mem.core.model import Entity, Fact, Page, Principal, Record, RecordId, is_id
from graph_mem.core.proposals import Decision, Proposal, ProposalKind, ProposalState
from graph_mem.errors import GraphMemError
from graph_mem.services import Deps, fact_lists, records, review
from graph_mem.store.reviews import Filter

_PAGE = 100
_SHOWN_CHARACTERS = 600
_SHOWN_SEARCHES = 3
_SHOWN_FACTS = 5

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
    """One row for each proposal, which can be read at 80 columns."""
    view = Table(Column("id", no_wrap=True), Column("score", no_wrap=True), "proposal")
    for one in proposals:
        filed = f"{one.proposed_at:%Y-%m-%d}"
        what = (f"\n{_line(things.get(id), id)}" for id in one.subject_ids)
        told = Text.assemble((_would(one), "bold"), f", {filed}", *what, ("\n" + one.reason, "dim"))
        view.add_row(one.id, f"{one.score:.2f}", told)
    return view


async def ask(
    deps: Deps, principal: Principal, proposals: Sequence[Proposal], console: Console, read: Callable[[str], str]
) -> list[Outcome]:
    """Ask about each proposal in turn and carry out the answers; `q` leaves the rest."""
    things = await named(deps, principal, proposals)
    retrievals = await review.retrievals(deps, principal, proposals)
    outcomes: list[Outcome] = []
    for number, (one, searches) in enumerate(zip(proposals, retrievals, strict=True), start=1):
        beside = [*_cited(one, things), *await _active(deps, principal, one, things), *_counted(searches)]
        console.print(Harmless(_view(one, things, beside, title=f"{number} of {len(proposals)}  {_would(one)}")))
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


def _cited(one: Proposal, things: Named) -> list[Text]:
    evidence = [id for id in one.evidence_ids if id not in one.subject_ids]
    return [_told("evidence", _whole(things.get(id), id)) for id in evidence]


async def _active(deps: Deps, principal: Principal, one: Proposal, things: Named) -> list[Text]:
    """What holds in the slot of a proposed fact now, which keeping it may replace."""
    fact = things.get(one.subject_ids[0])
    if one.kind is not ProposalKind.PROMOTE_FACT or not isinstance(fact, Fact):
        return []
    scope = (fact.place.scope.client_id, fact.place.scope.deal_id)
    wanted = await fact_lists.list_filter(deps, principal, scope=scope, subject=fact.subject, relation=fact.relation)
    found = await fact_lists.page(deps, principal, wanted, Page(_SHOWN_FACTS))
    return [_told("says now", _whole(other, other.id)) for other in found if other.place == fact.place]


def _counted(searches: Sequence[str]) -> list[Text]:
    return [_told("counted from", Text(", ".join(searches[:_SHOWN_SEARCHES])))] if searches else []


def _told(what: str, words: Text) -> Text:
    return Text.assemble((f"{what}  ", "dim"), words)


def _view(one: Proposal, things: Named, beside: Sequence[Text], *, title: str) -> Panel:
    numbers = Table.grid(padding=(0, 2))
    for name, value in one.signals.items():
        numbers.add_row(Text(name, style="dim"), f"{value:g}")
    sides = Table.grid(padding=(0, 3), expand=True)
    sides.add_column(ratio=3)
    sides.add_column(ratio=2)
    sides.add_row(Group(*(_whole(things.get(id), id) for id in one.subject_ids)), Group(one.reason, one.gate, numbers))
    return Panel(Group(sides, *beside), title=title, subtitle=one.id, title_align="left", subtitle_align="right")


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
