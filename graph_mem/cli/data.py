"""Bringing texts in: folders, files, chats."""

import asyncio
from dataclasses import dataclass, field
from datetime import tzinfo
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from graph_mem import app
from graph_mem.cli.access import LOCAL_ORGANIZATION, LOCAL_USER, OrganizationOption, UserOption, complete
from graph_mem.cli.acting import enrolled
from graph_mem.cli.output import DataDirOption, JsonOption, Output, settings_for
from graph_mem.core.feeds import SUFFIXES, items
from graph_mem.core.model import ORGANIZATION, Principal, Scope, ScopeLevel
from graph_mem.core.people import Enrolment
from graph_mem.errors import InvalidInput
from graph_mem.services import Deps, imports, records
from graph_mem.services.imports import Target

commands = typer.Typer()

_POLL_S = 0.5
_SKIPPED_SHOWN = 10
_PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    name: str


@dataclass(slots=True)
class _Outcome:
    read: int = 0
    new: int = 0
    failed: dict[str, str] = field(default_factory=dict[str, str])
    waiting: int = 0
    skipped: tuple[str, ...] = ()

    def document(self) -> dict[str, object]:
        return {
            "read": self.read,
            "saved": self.new,
            "alreadyThere": self.read - self.new,
            "failed": [{"file": name, "message": why} for name, why in self.failed.items()],
            "skipped": list(self.skipped),
            "stillProcessing": self.waiting,
        }

    def table(self) -> Table:
        table = Table("texts read", "saved", "already there", "files that do not fit", "still processing")
        table.add_row(
            str(self.read), str(self.new), str(self.read - self.new), str(len(self.failed)), str(self.waiting)
        )
        return table


@commands.command("import")
def import_(
    paths: Annotated[
        list[Path],
        typer.Argument(
            exists=True, help="Folders and files: Markdown, text, JSON Lines, chats as JSON.", metavar="PATH..."
        ),
    ],
    organization: OrganizationOption = LOCAL_ORGANIZATION,
    user: UserOption = LOCAL_USER,
    client: Annotated[str | None, typer.Option("--client", help="Name of the client it is about.")] = None,
    deal: Annotated[str | None, typer.Option("--deal", help="Name of the deal it is about.")] = None,
    groups: Annotated[
        bool, typer.Option("--clients-by-group/--one-place", help="Rows with a `group` go to a client of that name.")
    ] = True,
    private: Annotated[bool, typer.Option("--private", help="For that user's eyes only.")] = False,
    label: Annotated[str | None, typer.Option("--label", help="Label of every text; else by kind of file.")] = None,
    timezone: Annotated[str, typer.Option("--timezone", help="Of times that carry no offset.")] = "UTC",
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Until everything is processed.")] = True,
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """Save every text in folders and files; what was imported before is passed over."""
    output = Output(as_json=as_json)
    settings = complete(settings_for(data_dir))
    files, skipped = _files(paths)
    zone = _zone(timezone)

    async def work() -> _Outcome:
        async with app.opened(settings, start_model=False) as deps:
            enrolment, principal = await enrolled(deps, organization=organization, user=user, client=client, deal=deal)
            target = Target(scope=_scope(enrolment), private=private, label=label, by_group=groups and not client)
            return await _import(deps, principal, files, zone=zone, target=target, output=output, wait=wait)

    outcome = asyncio.run(work())
    outcome.skipped = skipped
    for name in skipped[:_SKIPPED_SHOWN]:
        output.note(f"{name}: skipped, for it is none of {', '.join(sorted(SUFFIXES))}")
    if len(skipped) > _SKIPPED_SHOWN:
        output.note(f"and {len(skipped) - _SKIPPED_SHOWN} more files skipped")
    for name, why in outcome.failed.items():
        output.note(f"{name}: {why}")
    output.show(outcome.document(), outcome.table())
    if outcome.failed:
        raise typer.Exit(1)


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise InvalidInput(
            f"{name!r} is no time zone, expected one such as Europe/Berlin.", path=("timezone",)
        ) from None


def _scope(enrolment: Enrolment) -> Scope:
    if enrolment.deal_id:
        return Scope(ScopeLevel.DEAL, enrolment.client_id, enrolment.deal_id)
    return Scope(ScopeLevel.CLIENT, enrolment.client_id) if enrolment.client_id else ORGANIZATION


def _files(paths: list[Path]) -> tuple[list[_File], tuple[str, ...]]:
    """The files to read, in order of name, called by their place under the folder given; and the names of others.

    Hidden files that cannot be read are not named: nobody looks for what they say.
    """
    read: list[_File] = []
    skipped: list[str] = []
    for path in paths:
        if not path.is_dir():
            read.append(_File(path, path.name))
            continue
        for one in sorted(path.rglob("*")):
            place = one.relative_to(path)
            name = f"{path.name}/{place.as_posix()}"
            if not one.is_file():
                continue
            if one.suffix.lower() in SUFFIXES:
                read.append(_File(one, name))
            elif not any(part.startswith(".") for part in place.parts):
                skipped.append(name)
    return read, tuple(skipped)


async def _import(
    deps: Deps,
    principal: Principal,
    files: list[_File],
    *,
    zone: tzinfo,
    target: Target,
    output: Output,
    wait: bool,
) -> _Outcome:
    outcome = _Outcome()
    with _progress(output) as progress:
        task = progress.add_task("files", total=len(files))
        for file in files:
            read = new = 0
            try:
                content = await asyncio.to_thread(file.path.read_bytes)
                async for step in imports.run(deps, principal, items(content, file.name, zone=zone), target):
                    read, new = step.read, step.new
                    progress.update(task, description=f"{file.name}: {read} texts")
            except InvalidInput as error:
                outcome.failed[file.name] = error.message
            except OSError as error:
                outcome.failed[file.name] = error.strerror or str(error)
            outcome.read, outcome.new = outcome.read + read, outcome.new + new
            progress.advance(task)
        outcome.waiting = await _waited(deps, principal, progress) if wait else await _waiting(deps, principal)
    return outcome


def _progress(output: Output) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=output.notes, transient=True)


async def _waited(deps: Deps, principal: Principal, progress: Progress) -> int:
    """Wait until nothing is left to process; returns what is left when the work stands still for a minute."""
    left = await _waiting(deps, principal)
    task = progress.add_task("processed", total=left)
    moved = asyncio.get_running_loop().time()
    while left and asyncio.get_running_loop().time() - moved < _PATIENCE_S:
        await asyncio.sleep(_POLL_S)
        before, left = left, await _waiting(deps, principal)
        if left != before:
            moved = asyncio.get_running_loop().time()
        progress.advance(task, before - left)
    return left


async def _waiting(deps: Deps, principal: Principal) -> int:
    return await records.pending(deps, principal)
