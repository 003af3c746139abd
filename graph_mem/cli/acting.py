"""Doing something as one user of one organization, without loading a model."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from graph_mem.cli.access import complete
from graph_mem.cli.output import settings_for
from graph_mem.core.model import Principal
from graph_mem.core.people import Enrolment
from graph_mem.errors import NotFound
from graph_mem.services import Deps, admin, identity

T = TypeVar("T")


def as_user(
    work: Callable[[Deps, Principal], Awaitable[T]], *, organization: str, user: str, data_dir: Path | None
) -> T:
    """The result of `work`, done as this user. Errors: NotFound if the organization has no such member."""
    from graph_mem import app

    settings = complete(settings_for(data_dir))

    async def act() -> T:
        async with app.opened(settings, start_model=False) as deps:
            _, principal = await enrolled(deps, organization=organization, user=user)
            return await work(deps, principal)

    return asyncio.run(act())


async def enrolled(
    deps: Deps, *, organization: str, user: str, client: str | None = None, deal: str | None = None
) -> tuple[Enrolment, Principal]:
    """The ids behind these names, and the user as whom they are used. Errors: NotFound if one is missing."""
    enrolment = await admin.find_principal(deps, organization=organization, user=user, client=client, deal=deal)
    principal = await identity.principal(deps, org_id=enrolment.org_id, user_id=enrolment.user_id)
    if principal is None:
        raise NotFound(user, path=("user",), what=f"member of {organization!r}")
    return enrolment, principal
