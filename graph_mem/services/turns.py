"""Whose work comes first: an organization that sends thousands of texts does not keep the others waiting.

Jobs are done in order of rank. What an organization sends gets a rank that counts up while it sends much, so that
the first text of another one stands before its thousandth. In this process; others count for themselves.
"""

from collections import OrderedDict
from datetime import datetime, timedelta

from graph_mem.core.model import OrganizationId

_WINDOW = timedelta(minutes=1)
_MOST_ORGANIZATIONS = 10_000


class Turns:
    """How much each organization sent lately."""

    def __init__(self) -> None:
        self._sent: OrderedDict[OrganizationId, tuple[datetime, int]] = OrderedDict()

    def take(self, org_id: OrganizationId, count: int, *, now: datetime) -> int:
        """The rank of the first of `count` texts that the organization sends now."""
        since, sent = self._sent.get(org_id, (now, 0))
        if now - since >= _WINDOW:
            since, sent = now, 0
        self._sent[org_id] = (since, sent + count)
        self._sent.move_to_end(org_id)
        if len(self._sent) > _MOST_ORGANIZATIONS:
            self._sent.popitem(last=False)
        return sent
