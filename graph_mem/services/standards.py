"""What an organization decided, read together before a transaction: reading settings takes a connection itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from graph_mem.core.lifecycle import LifecycleConfig
from graph_mem.core.model import OrganizationId, Record
from graph_mem.core.strength import strength_of
from graph_mem.core.text import name_key
from graph_mem.core.vocabulary import Vocabulary
from graph_mem.services import Deps
from graph_mem.services.facts import Rules


@dataclass(frozen=True, slots=True)
class Standards:
    """Words, rules and weights of one organization."""

    vocabulary: Vocabulary
    lifecycle: LifecycleConfig
    weights: Mapping[str, float]

    @property
    def facts(self) -> Rules:
        many = frozenset(map(name_key, self.vocabulary.many_relations))
        return Rules(many, self.lifecycle.write_gate)

    def strength(self, record: Record, now: datetime) -> float:
        """What a record's signals come to at `now`."""
        return strength_of(record, vocabulary=self.vocabulary, weights=self.weights, now=now).value


async def standards_of(deps: Deps, org_id: OrganizationId) -> Standards:
    """The organization's standards, at most as old as the settings cache."""
    return Standards(
        await deps.settings.vocabulary(org_id),
        await deps.settings.lifecycle(org_id),
        (await deps.settings.retrieval(org_id)).strength_weights,
    )
