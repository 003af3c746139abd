"""Where a sentence belongs: its slot, its seat in the slot, and the key under which a person may have refused it."""

from dataclasses import dataclass

from graph_mem.core.model import Place
from graph_mem.core.slots import active_key, slot_key
from graph_mem.core.text import name_key, rejection_hash, statement_hash


@dataclass(frozen=True, slots=True)
class Seat:
    """The keys of a sentence. `active_key` is unique among active facts, `rejection_key` among refusals."""

    slot_key: str
    active_key: str
    rejection_key: str
    subject_key: str
    relation_key: str
    statement_hash: str


def seat(place: Place, *, subject: str, relation: str, statement: str, many: bool) -> Seat:
    """The seat of a sentence: the slot's only one, or in a set-valued slot one of its own."""
    slot = slot_key(place, subject=subject, relation=relation)
    return Seat(
        slot_key=slot,
        active_key=active_key(slot, statement=statement, many=many),
        rejection_key=f"{slot}|{rejection_hash(statement)}",
        subject_key=name_key(subject),
        relation_key=name_key(relation),
        statement_hash=statement_hash(statement),
    )
