"""Who may call: organizations, members, assignments, keys and tokens."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.table import Table
from rich.text import Text

from graph_mem.api.tokens import issue
from graph_mem.cli.access import complete, open_database
from graph_mem.cli.output import DataDirOption, JsonOption, Output, settings_for
from graph_mem.config import Settings
from graph_mem.core.model import Role
from graph_mem.core.people import ApiKey, DocumentPolicy, Enrolment, Member
from graph_mem.errors import NotFound, SetupError
from graph_mem.services import Clock, admin, new_id, utc_now
from graph_mem.signing import token_settings
from graph_mem.store.db import Database

T = TypeVar("T")

commands = typer.Typer()
org = typer.Typer(help="Organizations: the tenants of this installation.", no_args_is_help=True)
user = typer.Typer(help="Members of an organization and their roles.", no_args_is_help=True)
assign = typer.Typer(help="Which clients and deals a member works for.", no_args_is_help=True)
key = typer.Typer(help="API keys: long-lived, revocable, shown once.", no_args_is_help=True)
for _name, _group in (("org", org), ("user", user), ("assign", assign), ("key", key)):
    commands.add_typer(_group, name=_name)

OrgOption = Annotated[str, typer.Option("--org", help="Name or id of the organization.")]
UserOption = Annotated[str, typer.Option("--user", help="Name or id of the user.")]
RoleOption = Annotated[Role, typer.Option("--role", case_sensitive=False, help="What the user is there.")]
ClientOption = Annotated[str | None, typer.Option("--client", help="Name or id of a client.", show_default=False)]
DealOption = Annotated[str | None, typer.Option("--deal", help="Name or id of a deal.", show_default=False)]


@dataclass(frozen=True, slots=True)
class Desk:
    """What managing people needs; no models are loaded for it."""

    db: Database
    clock: Clock = utc_now
    new_id: Callable[[str], str] = new_id


@commands.command()
def token(
    organization: OrgOption,
    user: UserOption,
    role: RoleOption,
    client: ClientOption = None,
    deal: DealOption = None,
    create: Annotated[bool, typer.Option("--create", help="Make whatever of this is missing.")] = False,
    days: Annotated[
        int | None, typer.Option("--days", min=1, help="Days until it expires.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """Give a token to a user of an organization."""

    async def work(desk: Desk) -> Enrolment:
        found = admin.ensure_principal if create else admin.find_principal
        try:
            return await found(desk, organization=organization, user=user, role=role, client=client, deal=deal)
        except NotFound as one:
            if create:
                raise
            raise NotFound(one.id, path=one.path, what=one.what, hint="--create makes what is missing.") from None

    output, settings, enrolment = _run(work, as_json=as_json, data_dir=data_dir)
    if settings.jwt_jwks_url is not None:
        raise SetupError("Tokens come from the identity provider here; `graph-mem key create` gives an API key.")
    now = utc_now()
    lifetime = timedelta(days=days or settings.token_lifetime_days)
    made = issue(
        token_settings(settings), org_id=enrolment.org_id, user_id=enrolment.user_id, now=now, lifetime=lifetime
    )
    document = {"token": made, **_ids(enrolment), "expiresAt": _shown(now + lifetime)}
    _show_secret(output, document, made)


@org.command("create")
def create_organization(
    name: Annotated[str, typer.Argument(help="Name of the new organization.")],
    owner: Annotated[str, typer.Option("--owner", help="Name of the user who owns it.")],
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """Make an organization, with its owner."""
    asked = partial(admin.create_organization, name=name, owner=owner)
    output, _, made = _run(asked, as_json=as_json, data_dir=data_dir)
    output.show(_ids(made), Text(f"{name}: {made.org_id}, owned by {owner}: {made.user_id}"))


@org.command("list")
def list_organizations(as_json: JsonOption = False, data_dir: DataDirOption = None) -> None:
    """List every organization."""
    output, _, found = _run(admin.list_organizations, as_json=as_json, data_dir=data_dir)
    output.show(
        [{"organizationId": one.id, "name": one.name} for one in found],
        _table(["organization", "id"], [[one.name, one.id] for one in found]),
    )


@org.command("remove")
def remove_organization(organization: OrgOption, as_json: JsonOption = False, data_dir: DataDirOption = None) -> None:
    """Remove an organization in which nothing was ever saved."""
    asked = partial(admin.remove_organization, organization=organization)
    output, _, gone = _run(asked, as_json=as_json, data_dir=data_dir)
    output.show({"removed": gone.id}, Text(f"{gone.name} is gone"))


@user.command("create")
def create_user(
    organization: OrgOption,
    user: UserOption,
    role: RoleOption,
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """Make a user a member of an organization, or give a member another role."""
    asked = partial(admin.save_member, organization=organization, user=user, role=role)
    output, _, member = _run(asked, as_json=as_json, data_dir=data_dir)
    output.show(_member(member), Text(f"{member.name}: {member.user_id}, {member.role}"))


@user.command("list")
def list_users(organization: OrgOption, as_json: JsonOption = False, data_dir: DataDirOption = None) -> None:
    """List the members of an organization."""
    asked = partial(admin.list_members, organization=organization)
    output, _, members = _run(asked, as_json=as_json, data_dir=data_dir)
    output.show(
        [_member(member) for member in members],
        _table(["user", "role", "id"], [[one.name, one.role, one.user_id] for one in members]),
    )


@user.command("remove")
def remove_user(
    organization: OrgOption, user: UserOption, as_json: JsonOption = False, data_dir: DataDirOption = None
) -> None:
    """End a membership, with its assignments and keys; tokens stop within seconds. What was written stays."""
    asked = partial(admin.remove_member, organization=organization, user=user)
    output, _, member = _run(asked, as_json=as_json, data_dir=data_dir)
    output.show({"removed": member.user_id}, Text(f"{member.name} is no member any more"))


@assign.command("create")
def create_assignment(
    organization: OrgOption,
    user: UserOption,
    client: ClientOption = None,
    deal: DealOption = None,
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """Assign a member to a client, or to one deal of it; both are made where missing."""
    asked = partial(admin.assign, organization=organization, user=user, client=client, deal=deal)
    output, _, made = _run(asked, as_json=as_json, data_dir=data_dir)
    output.show(_ids(made), Text(f"{user} works for {deal or client} now"))


@assign.command("list")
def list_assignments(
    organization: OrgOption, user: UserOption, as_json: JsonOption = False, data_dir: DataDirOption = None
) -> None:
    """List what a member is assigned to."""
    asked = partial(admin.list_assignments, organization=organization, user=user)
    output, _, found = _run(asked, as_json=as_json, data_dir=data_dir)
    output.show(
        [
            {
                "level": one.level,
                "clientId": one.client.id,
                "client": one.client.name,
                "dealId": one.deal.id if one.deal else None,
                "deal": one.deal.name if one.deal else None,
            }
            for one in found
        ],
        _table(["client", "deal"], [[one.client.name, one.deal.name if one.deal else "all"] for one in found]),
    )


@assign.command("remove")
def remove_assignment(
    organization: OrgOption,
    user: UserOption,
    client: ClientOption = None,
    deal: DealOption = None,
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """End an assignment; it takes effect within seconds."""
    asked = partial(admin.unassign, organization=organization, user=user, client=client, deal=deal)
    output, _, gone = _run(asked, as_json=as_json, data_dir=data_dir)
    output.show(_ids(gone), Text(f"{user} does not work for {deal or client} any more"))


@key.command("create")
def create_key(
    organization: OrgOption,
    user: UserOption,
    name: Annotated[str, typer.Option("--name", help="What the key is for.")],
    documents: Annotated[
        DocumentPolicy,
        typer.Option("--documents", case_sensitive=False, help="Run any document, or the manifest's only."),
    ] = DocumentPolicy.ANY,
    introspection: Annotated[
        bool, typer.Option("--introspection/--no-introspection", help="Whether it may read the schema.")
    ] = True,
    days: Annotated[
        int | None, typer.Option("--days", min=1, help="Days until it expires; for ever if absent.")
    ] = None,
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """Make an API key for a member. Its secret is shown now and never again."""

    async def work(desk: Desk) -> admin.NewKey:
        return await admin.create_key(
            desk,
            organization=organization,
            user=user,
            name=name,
            documents=documents,
            introspection=introspection,
            lifetime=timedelta(days=days) if days else None,
        )

    output, _, made = _run(work, as_json=as_json, data_dir=data_dir)
    _show_secret(output, {**_key(made.key), "key": made.secret}, made.secret)


@key.command("list")
def list_keys(organization: OrgOption, as_json: JsonOption = False, data_dir: DataDirOption = None) -> None:
    """List the keys of an organization, the revoked ones too."""
    asked = partial(admin.list_keys, organization=organization)
    output, _, found = _run(asked, as_json=as_json, data_dir=data_dir)
    rows = [
        [one.name, one.user_id, one.documents, _shown(one.last_used_at) or "never", _state(one), one.id]
        for one in found
    ]
    output.show([_key(one) for one in found], _table(["key", "user", "documents", "last used", "state", "id"], rows))


@key.command("revoke")
def revoke_key(
    organization: OrgOption,
    key_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the key, as `key list` shows it.")],
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """Make a key worthless; it stops within seconds."""

    async def work(desk: Desk) -> None:
        await admin.revoke_key(desk, organization=organization, key_id=key_id)

    output, _, _ = _run(work, as_json=as_json, data_dir=data_dir)
    output.show({"revoked": key_id}, Text(f"{key_id} is revoked"))


def _run(work: Callable[[Desk], Awaitable[T]], *, as_json: bool, data_dir: Path | None) -> tuple[Output, Settings, T]:
    """The result of `work` on the instance's database."""
    output = Output(as_json=as_json)
    settings = complete(settings_for(data_dir))

    async def opened() -> T:
        async with open_database(settings) as database:
            return await work(Desk(database))

    return output, settings, asyncio.run(opened())


def _show_secret(output: Output, document: object, secret: str) -> None:
    """`secret` on a line of its own, however narrow the terminal: a table would cut it."""
    if output.as_json:
        output.show(document, "")
    else:
        typer.echo(secret)


def _ids(enrolment: Enrolment) -> dict[str, str | None]:
    return {
        "organizationId": enrolment.org_id,
        "userId": enrolment.user_id,
        "clientId": enrolment.client_id,
        "dealId": enrolment.deal_id,
    }


def _member(member: Member) -> dict[str, str]:
    return {"userId": member.user_id, "name": member.name, "role": member.role}


def _key(one: ApiKey) -> dict[str, object]:
    return {
        "keyId": one.id,
        "name": one.name,
        "userId": one.user_id,
        "documents": one.documents,
        "introspection": one.introspection,
        "createdAt": _shown(one.created_at),
        "expiresAt": _shown(one.expires_at),
        "lastUsedAt": _shown(one.last_used_at),
        "revokedAt": _shown(one.revoked_at),
    }


def _state(one: ApiKey) -> str:
    if one.revoked_at is not None:
        return "revoked"
    return "expired" if one.expires_at is not None and one.expires_at <= utc_now() else "valid"


def _shown(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _table(columns: list[str], rows: list[list[str]]) -> Table:
    table = Table()
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table
