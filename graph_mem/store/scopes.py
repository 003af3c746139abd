"""Turns the client and deal that a caller names into a scope that exists and that the caller may read."""

from graph_mem.core.model import ORGANIZATION, ClientId, DealId, Place, Principal, Scope, ScopeLevel
from graph_mem.errors import NotFound
from graph_mem.store.db import Tx, row

KNOWN = """
OPTIONAL MATCH (c:Client {id: $client}) WHERE c.org = $org
OPTIONAL MATCH (d:Deal {id: $deal}) WHERE d.org = $org
RETURN c.id AS client, d.id AS deal, d.clientId AS clientOfDeal
"""


async def resolve(tx: Tx, principal: Principal, *, client_id: str | None, deal_id: str | None) -> Scope:
    """The scope named, the organization's if nothing is.

    Errors: NotFound for a client or deal that does not exist, is not of this organization, does not belong
    together, or may not be read: the same answer for all.
    """
    if client_id is None and deal_id is None:
        return ORGANIZATION
    found = await row(tx, KNOWN, org=principal.org_id, client=client_id, deal=deal_id)
    if found is None or (client_id is not None and found["client"] is None):
        raise NotFound(client_id or "", path=("scope", "clientId"))
    if deal_id is None:
        scope = Scope(ScopeLevel.CLIENT, ClientId(found["client"]))
    elif found["deal"] is None or client_id not in (None, found["clientOfDeal"]):
        raise NotFound(deal_id, path=("scope", "dealId"))
    else:
        scope = Scope(ScopeLevel.DEAL, ClientId(found["clientOfDeal"]), DealId(deal_id))
    if not principal.reads(Place(principal.org_id, scope)):
        raise NotFound(deal_id or client_id or "", path=("scope", "dealId" if deal_id else "clientId"))
    return scope
