"""Keeping the base healthy: the cycle, the review queue, archive, erasure, and what may be trained on."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, RenderableType
from rich.table import Column, Table

from graph_mem.cli.access import LOCAL_ORGANIZATION, LOCAL_USER, OrganizationOption, UserOption
from graph_mem.cli.acting import as_user
from graph_mem.cli.documents import as_object
from graph_mem.cli.output import DataDirOption, JsonOption, Output
from graph_mem.core.model import Fact, Page, Principal, Record
from graph_mem.core.proposals import Decision, Proposal, ProposalKind, ProposalState
from graph_mem.errors import InvalidInput
from graph_mem.services import Deps
from graph_mem.services.erasure import Erased

commands = typer.Typer()

RecordArgument = Annotated[str, typer.Argument(help="Id of the memory or fact.", metavar="ID")]
ReasonOption = Annotated[str | None, typer.Option("--reason", help="Why, for whoever reads the history.")]
_MOST = 500


@commands.command()
def consolidate(
    organization: OrganizationOption = LOCAL_ORGANIZATION,
    user: UserOption = LOCAL_USER,
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """Look for what is worth proposing, now; nothing changes but the review queue."""
    from graph_mem.services import consolidation

    report = as_user(consolidation.consolidate, organization=organization, user=user, data_dir=data_dir)
    table = Table("proposals filed", "kept unasked", "memories looked at", "newly rehearsed")
    table.add_row(*map(str, (report.filed, report.auto_kept, report.looked_at, report.enrolled)))
    Output(as_json=as_json).show(
        {
            "filed": report.filed,
            "autoKept": report.auto_kept,
            "lookedAt": report.looked_at,
            "enrolled": report.enrolled,
            "byKind": dict(report.by_kind),
        },
        table,
    )


@commands.command()
def review(
    list_: Annotated[bool, typer.Option("--list", help="Only show what waits.")] = False,
    keep: Annotated[str | None, typer.Option("--keep", help="Keep this proposal, unasked.", metavar="ID")] = None,
    revert: Annotated[str | None, typer.Option("--revert", help="Revert this proposal.", metavar="ID")] = None,
    kind: Annotated[list[ProposalKind] | None, typer.Option("--kind", help="Only this kind; repeatable.")] = None,
    state: Annotated[ProposalState, typer.Option("--state", help="Only in this state.")] = ProposalState.PENDING,
    organization: OrganizationOption = LOCAL_ORGANIZATION,
    user: UserOption = LOCAL_USER,
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """Go through the review queue: keep, revert or skip each proposal, with the evidence beside."""
    from graph_mem.cli import reviewing
    from graph_mem.services import review as service
    from graph_mem.store.reviews import Filter

    wanted = Filter(tuple(kind) if kind else None, (state,))
    output = Output(as_json=as_json)

    async def work(deps: Deps, who: Principal) -> tuple[object, RenderableType]:
        for id, decision in ((keep, Decision.KEEP), (revert, Decision.REVERT)):
            if id is not None:
                decided = await service.decide(deps, who, id, decision)
                return {"id": id, "state": decided.state.value}, f"{id} {decided.state.value}"
        found = await reviewing.waiting(deps, who, wanted, most=_MOST)
        if list_ or as_json:
            things = await reviewing.named(deps, who, found)
            return [_proposal(one) for one in found], reviewing.table(found, things)
        done = await reviewing.ask(deps, who, found, Console(markup=False), typer.prompt)
        decided = [one for one in done if one.done]
        return [as_object(one) for one in done], f"{len(decided)} decided, {len(found) - len(decided)} left"

    output.show(*as_user(work, organization=organization, user=user, data_dir=data_dir))


def _proposal(one: Proposal) -> dict[str, object]:
    return {
        "id": one.id,
        "kind": one.kind.value,
        "state": one.state.value,
        "shape": one.shape,
        "subjectIds": list(one.subject_ids),
        "evidenceIds": list(one.evidence_ids),
        "signals": dict(one.signals),
        "score": one.score,
        "gate": one.gate,
        "reason": one.reason,
        "version": one.version,
    }


@commands.command()
def archive(
    id: RecordArgument,
    reason: ReasonOption = None,
    undo: Annotated[bool, typer.Option("--undo", help="Bring it back.")] = False,
    organization: OrganizationOption = LOCAL_ORGANIZATION,
    user: UserOption = LOCAL_USER,
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """Take a record out of everyday recall, or with --undo bring it back as if it had never left."""
    from graph_mem.services import lifecycle

    async def work(deps: Deps, who: Principal) -> Record:
        return await (lifecycle.restore if undo else lifecycle.archive)(deps, who, id, reason=reason)

    _show_record(work, organization, user, data_dir, as_json=as_json)


@commands.command()
def validate(
    id: RecordArgument,
    refuted: Annotated[bool, typer.Option("--refuted", help="It does not hold any more.")] = False,
    reason: ReasonOption = None,
    organization: OrganizationOption = LOCAL_ORGANIZATION,
    user: UserOption = LOCAL_USER,
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """Say of a record that it still holds, or with --refuted that it does not."""
    from graph_mem.services import lifecycle

    async def work(deps: Deps, who: Principal) -> Record:
        return await lifecycle.validate(deps, who, id, holds=not refuted, reason=reason)

    _show_record(work, organization, user, data_dir, as_json=as_json)


def _show_record(
    work: Callable[[Deps, Principal], Awaitable[Record]],
    organization: str,
    user: str,
    data_dir: Path | None,
    *,
    as_json: bool,
) -> None:
    record = as_user(work, organization=organization, user=user, data_dir=data_dir)
    document = {"id": record.id, "standing": record.standing.value, "version": record.version}
    Output(as_json=as_json).show(document, f"{record.id} is {record.standing.value}")


@commands.command()
def trust(
    organization: OrganizationOption = LOCAL_ORGANIZATION,
    user: UserOption = LOCAL_USER,
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """Show what people decided so far, by shape of change."""
    from graph_mem.services import review as service

    found = as_user(service.trusted, organization=organization, user=user, data_dir=data_dir)
    table = Table("change", "shape", "kept", "reverted", "next one kept unasked")
    for one in found:
        count = one.count
        table.add_row(
            count.kind.value, count.shape, str(count.kept), str(count.reverted), "yes" if one.auto_keep else "no"
        )
    Output(as_json=as_json).show([{**as_object(one.count), "autoKeep": one.auto_keep} for one in found], table)


@commands.command()
def rehearsals(
    all_: Annotated[bool, typer.Option("--all", help="Those that are not due yet, too.")] = False,
    organization: OrganizationOption = LOCAL_ORGANIZATION,
    user: UserOption = LOCAL_USER,
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """Show what is due to be looked at again; `validate` answers."""
    from graph_mem.services import records
    from graph_mem.services import review as service

    async def work(deps: Deps, who: Principal) -> list[tuple[str, int, str, str]]:
        found = (await service.due(deps, who, only_due=not all_, page=Page(_MOST)))[:_MOST]
        things = await records.by_ids(deps, who, [one.record_id for one in found])
        return [
            (one.record_id, one.rehearsal.box, f"{one.rehearsal.due_at:%Y-%m-%d}", _words(things.get(one.record_id)))
            for one in found
        ]

    found = as_user(work, organization=organization, user=user, data_dir=data_dir)
    table = Table(Column("record", no_wrap=True), "box", "due", "what it says")
    for id, box, due, words in found:
        table.add_row(id, str(box), due, words)
    Output(as_json=as_json).show([{"id": id, "box": box, "due": due} for id, box, due, _ in found], table)


def _words(record: Record | None) -> str:
    words = record.statement if isinstance(record, Fact) else record.text if record else None
    return (words or "").replace("\n", " ")[:80]


@commands.command()
def erase(
    id: Annotated[str | None, typer.Argument(help="Id of the memory or fact.", metavar="[ID]")] = None,
    reason: Annotated[str | None, typer.Option("--reason", help="Why; not what it said.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Take the title as well.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would go.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask again.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Look afterwards for the words everywhere.")] = False,
    words: Annotated[
        Path | None,
        typer.Option("--words", exists=True, dir_okay=False, help="With --verify and no ID: a file with the words."),
    ] = None,
    dump: Annotated[
        list[Path] | None, typer.Option("--dump", exists=True, help="With --verify: look in these files, too.")
    ] = None,
    organization: OrganizationOption = LOCAL_ORGANIZATION,
    user: UserOption = LOCAL_USER,
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """Take a record's words out of everything, for good. That it existed, and when it changed, stays."""
    from graph_mem.cli import proving
    from graph_mem.services import erasure

    output = Output(as_json=as_json)
    if id is None and not (verify and words):
        raise InvalidInput("Found no ID, expected one, or --verify with --words.", path=("ID",))
    if id is not None and not (dry_run or yes):
        typer.confirm(f"Erase {id} for good?", abort=True)

    async def work(deps: Deps, who: Principal) -> tuple[Erased | None, proving.Proof | None]:
        done = None
        if id is not None:
            why = reason or "asked for on the command line"
            done = await erasure.erase(deps, who, id, confirm_id=id, reason=why, strict=strict, dry_run=dry_run)
        if not verify or dry_run:
            return done, None
        needles = done.needles if done else proving.needles(words)
        return done, await proving.prove(deps, needles, dump or [])

    done, proof = as_user(work, organization=organization, user=user, data_dir=data_dir)
    output.show(*proving.shown(done, proof))
    if proof is not None and not proof.clean:
        raise typer.Exit(1)


@commands.command("export-pairs")
def export_pairs(
    to: Annotated[Path, typer.Argument(dir_okay=False, help="A new file: JSON Lines.", metavar="FILE")],
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite the file if there is one.")] = False,
    organization: OrganizationOption = LOCAL_ORGANIZATION,
    user: UserOption = LOCAL_USER,
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """Write kept shared knowledge as prompt and completion, for training a model on it."""
    from graph_mem.services import pairs as service

    async def work(deps: Deps, who: Principal) -> list[str]:
        config = await deps.settings.lifecycle(who.org_id)
        found = service.pairs(deps, who, promoted_label=config.promote_to)
        return [json.dumps(as_object(one), ensure_ascii=False) async for one in found]

    def there() -> InvalidInput:
        return InvalidInput(f"{to} exists already; --replace overwrites it.", path=("FILE",))

    if to.exists() and not replace:
        raise there()
    lines = as_user(work, organization=organization, user=user, data_dir=data_dir)
    try:
        with to.open("w" if replace else "x", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
    except FileExistsError:
        raise there() from None
    Output(as_json=as_json).show({"pairs": len(lines), "file": str(to)}, f"{len(lines)} pairs in {to}")
