"""What was: the history and the chain of a record; and facts, said and listed."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, cast

import typer
from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from graph_mem.cli.access import LOCAL_ORGANIZATION, LOCAL_USER, OrganizationOption, UserOption
from graph_mem.cli.acting import as_user
from graph_mem.cli.output import DataDirOption, JsonOption, Output
from graph_mem.cli.succession import tree
from graph_mem.core.model import FAR, Event, Fact, Page, Principal, RecordId, Standing
from graph_mem.core.supersession import Chain
from graph_mem.errors import InvalidInput, NotFound
from graph_mem.services import Deps, admin, fact_lists, facts, history
from graph_mem.services.facts import NewFact
from graph_mem.store.times import ms

commands = typer.Typer()
fact = typer.Typer(
    help="What is true of whom: one current sentence for each subject and relation.", no_args_is_help=True
)
commands.add_typer(fact, name="fact")

_PAGE = 500

RecordArgument = Annotated[str, typer.Argument(help="Id of the memory or fact.", metavar="ID")]
ClientOption = Annotated[
    str | None, typer.Option("--client", help="Name of the client it is about.", show_default=False)
]
DealOption = Annotated[str | None, typer.Option("--deal", help="Name of the deal it is about.", show_default=False)]
InstantOption = typer.Option(help="An instant with an offset, as 2026-11-30T09:00:00Z.", show_default=False)


@commands.command("history")
def history_(
    id: RecordArgument,
    organization: OrganizationOption = LOCAL_ORGANIZATION,
    user: UserOption = LOCAL_USER,
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """Everything that happened to a record, oldest first."""

    async def work(deps: Deps, who: Principal) -> tuple[list[Event], dict[str, str]]:
        names = await _names(deps, organization)
        found: list[Event] = []
        after = None
        while True:
            page = await history.history(deps, who, id, Page(_PAGE, after))
            found += page[:_PAGE]
            if len(page) <= _PAGE:
                return found, names
            after = (ms(found[-1].at), found[-1].id)

    events, names = as_user(work, organization=organization, user=user, data_dir=data_dir)
    if not events:
        raise NotFound(id)
    table = Table("when and by", "what", "details", box=box.SIMPLE_HEAD)
    for event in events:
        version = f", version {event.version}" if event.version else ""
        details = "\n".join(f"{name} {_told(value)}" for name, value in (event.detail or {}).items())
        table.add_row(Text(f"{_shown(event.at)}\n{_who(event.by, names)}"), f"{event.kind}{version}", Text(details))
    Output(as_json=as_json).show([_event(event) for event in events], table)


def _who(by: str, names: Mapping[str, str]) -> str:
    return f"{names[by]}\n{by}" if by in names else by


def _told(value: object) -> str:
    """A detail as people read it: a list as its elements, anything else as in JSON, a text without its quotes."""
    if isinstance(value, (list, tuple)):
        return ", ".join(_told(one) for one in cast("Sequence[object]", value))
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)


def _event(event: Event) -> dict[str, object]:
    return {
        "id": event.id,
        "at": _shown(event.at),
        "by": event.by,
        "kind": event.kind,
        "version": event.version,
        "detail": event.detail,
    }


@commands.command("chain")
def chain_(
    id: RecordArgument,
    organization: OrganizationOption = LOCAL_ORGANIZATION,
    user: UserOption = LOCAL_USER,
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """What replaced what around a record, the newest on top."""

    async def work(deps: Deps, who: Principal) -> tuple[Chain | None, dict[str, str]]:
        return await history.chain(deps, who, id), await _names(deps, organization)

    found, names = as_user(work, organization=organization, user=user, data_dir=data_dir)
    if found is None:
        raise NotFound(id)
    document = {
        "records": [{"id": record.id, "standing": record.standing} for record in found.records],
        "heads": [record.id for record in found.heads],
        "links": [
            {
                "id": link.id,
                "newer": link.from_id,
                "older": link.to_id,
                "at": _shown(link.at),
                "by": link.by,
                "reason": link.reason,
                "state": link.state,
            }
            for link in found.links
        ],
    }
    Output(as_json=as_json).show(document, tree(found, around=RecordId(id), names=names))


@fact.command("add")
def fact_add(
    subject: Annotated[str, typer.Argument(help="Who or what it is about.")],
    relation: Annotated[str, typer.Argument(help="What it says of the subject, in a word or two.")],
    statement: Annotated[str, typer.Argument(help="One sentence that stands by itself.")],
    client: ClientOption = None,
    deal: DealOption = None,
    private: Annotated[bool, typer.Option("--private", help="For that user's eyes only.")] = False,
    valid_from: Annotated[str | None, InstantOption] = None,
    valid_to: Annotated[str | None, InstantOption] = None,
    source: Annotated[list[str] | None, typer.Option("--source", help="A memory that states it.")] = None,
    organization: OrganizationOption = LOCAL_ORGANIZATION,
    user: UserOption = LOCAL_USER,
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """Say what is true; the former value is superseded in the same instant."""
    since, until = _instant(valid_from, "--valid-from"), _instant(valid_to, "--valid-to")

    async def work(deps: Deps, who: Principal) -> facts.Saved:
        place = await _place(deps, organization=organization, user=user, client=client, deal=deal)
        new = NewFact(
            subject=subject,
            relation=relation,
            statement=statement,
            client_id=place[0],
            deal_id=place[1],
            private=private,
            valid_from=since,
            valid_to=until,
            source_ids=tuple(source or ()),
        )
        return await facts.save(deps, who, new)

    saved = as_user(work, organization=organization, user=user, data_dir=data_dir)
    document = {
        "outcome": saved.outcome,
        "fact": _fact(saved.fact) if saved.fact else None,
        "revoked": _fact(saved.revoked) if saved.revoked else None,
    }
    shown = [one for one in (saved.fact, saved.revoked) if one]
    Output(as_json=as_json).show(document, Group(saved.outcome.lower().replace("_", " "), _facts(shown)))


@fact.command("list")
def fact_list(
    subject: Annotated[str | None, typer.Option("--subject", help="Only about this.", show_default=False)] = None,
    relation: Annotated[str | None, typer.Option("--relation", help="Only this relation.", show_default=False)] = None,
    every: Annotated[bool, typer.Option("--all", help="Superseded, rejected and proposed ones too.")] = False,
    as_of: Annotated[str | None, InstantOption] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="At most so many, the newest.")] = 100,
    organization: OrganizationOption = LOCAL_ORGANIZATION,
    user: UserOption = LOCAL_USER,
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """What is true now, or held at another time."""
    then = _instant(as_of, "--as-of")

    async def work(deps: Deps, who: Principal) -> list[Fact]:
        standings = tuple(Standing) if every else (Standing.CURRENT,)
        filter = await fact_lists.list_filter(
            deps, who, subject=subject, relation=relation, standings=standings, as_of=then
        )
        return (await fact_lists.page(deps, who, filter, Page(limit)))[:limit]

    found = as_user(work, organization=organization, user=user, data_dir=data_dir)
    Output(as_json=as_json).show([_fact(one) for one in found], _facts(found))


def _facts(found: list[Fact]) -> Table:
    """One row a fact, two lines of each: what is to be copied stands whole on 80 columns too."""
    table = Table("subject, relation", "statement and id", "standing, from, to", box=box.SIMPLE_HEAD)
    for one in found:
        interval = one.interval
        end = "" if interval.valid_to >= FAR else f"\n{_shown(interval.valid_to)}"
        table.add_row(
            Text(f"{one.subject}\n{one.relation}"),
            Text(f"{one.statement}\n{one.id}"),
            Text(f"{one.standing}\n{_shown(interval.valid_from)}{end}"),
        )
    return table


def _fact(one: Fact) -> dict[str, object]:
    return {
        "id": one.id,
        "subject": one.subject,
        "relation": one.relation,
        "statement": one.statement,
        "standing": one.standing,
        "validFrom": _shown(one.interval.valid_from),
        "validTo": None if one.interval.valid_to >= FAR else _shown(one.interval.valid_to),
    }


async def _names(deps: Deps, organization: str) -> dict[str, str]:
    return {one.user_id: one.name for one in await admin.list_members(deps, organization=organization)}


async def _place(
    deps: Deps, *, organization: str, user: str, client: str | None, deal: str | None
) -> tuple[str | None, str | None]:
    if client is None and deal is None:
        return None, None
    found = await admin.find_principal(deps, organization=organization, user=user, client=client, deal=deal)
    return found.client_id, found.deal_id


def _instant(text: str | None, option: str) -> datetime | None:
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise InvalidInput(f"{option} is {text!r}, expected an instant with an offset, as 2026-11-30T09:00:00Z.")
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


def _shown(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
