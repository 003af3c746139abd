from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_mem.core import rehearsal as r
from graph_mem.core.model import (
    Fact,
    Interval,
    Memory,
    OrganizationId,
    Place,
    Processing,
    RecordId,
    Scope,
    Signals,
    Source,
    SourceKind,
    Standing,
    UserId,
)
from graph_mem.core.vocabulary import Label

NOW = datetime(2026, 11, 30, tzinfo=UTC)
PLACE = Place(OrganizationId("org_a"), Scope())
NOTE = Memory(
    id=RecordId("mem_a"),
    place=PLACE,
    label="note",
    position=False,
    text="x",
    source=Source(SourceKind.USER, UserId("usr_a")),
    processing=Processing.READY,
    standing=Standing.CURRENT,
    version=1,
    importance=0.5,
    created_at=NOW,
    fresh_at=NOW,
    interval=Interval(NOW, NOW),
)
FACT = Fact(
    RecordId("fact_a"), PLACE, "s", "r", "x", Standing.CURRENT, 1, 1.0, NOW, Interval(NOW, NOW), UserId("usr_a")
)
PLAIN, PROTECTED = Label("note"), Label("playbook", protected=True)


def test_the_distance_grows_while_a_record_holds() -> None:
    held, waited = r.enrolled(NOW), [1]
    for _ in range(5):
        held = r.validated(held, NOW)
        waited.append((held.due_at - NOW).days)
    assert waited == [1, 3, 7, 21, 60, 60]
    assert held.box == 5


@given(st.integers(1, 5), st.integers(-400, 400))
def test_validating_early_or_late_counts_from_now(box: int, days: int) -> None:
    held = r.Rehearsal(box, NOW + timedelta(days=days))
    after = r.validated(held, NOW)
    assert after.box == min(box + 1, 5)
    assert after.due_at > NOW
    assert not after.due(NOW)


@given(st.integers(1, 5))
def test_a_refuted_record_starts_again(box: int) -> None:
    assert r.refuted(NOW) == r.enrolled(NOW) == r.Rehearsal(1, NOW + timedelta(days=1))


def test_a_record_is_due_from_its_instant_on() -> None:
    held = r.enrolled(NOW)
    assert not held.due(NOW + timedelta(days=1, microseconds=-1))
    assert held.due(NOW + timedelta(days=1))


def test_fewer_boxes_bring_a_record_down_to_the_last() -> None:
    assert r.validated(r.Rehearsal(5, NOW), NOW, days=(2, 4)) == r.Rehearsal(2, NOW + timedelta(days=4))


@pytest.mark.parametrize("days", [(), (0, 1)])
def test_boxes_that_make_no_sense_are_refused(days: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="expected box 1"):
        r.enrolled(NOW, days=days)


def test_only_what_is_at_stake_is_enrolled_by_itself() -> None:
    assert not r.high_stakes(NOTE, PLAIN, pinned=False)
    assert not r.high_stakes(FACT, None, pinned=False)
    assert r.high_stakes(replace(NOTE, position=True), PLAIN, pinned=False)
    assert r.high_stakes(NOTE, PROTECTED, pinned=False)
    assert r.high_stakes(NOTE, PLAIN, pinned=True)
    assert r.high_stakes(replace(FACT, signals=Signals(evergreen=True)), None, pinned=False)


@pytest.mark.parametrize("standing", sorted(set(Standing) - {Standing.CURRENT}))
def test_what_is_not_current_is_not_rehearsed(standing: Standing) -> None:
    assert not r.high_stakes(replace(NOTE, position=True, standing=standing), PROTECTED, pinned=True)
