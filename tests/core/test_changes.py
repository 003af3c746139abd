"""Taking decisions back: any of them, in any order, restores what was there."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from graph_mem.core.changes import (
    Change,
    EdgeRef,
    Image,
    Kept,
    NodeRef,
    PropertyChange,
    difference,
    merged,
    undo,
)
from graph_mem.store.images import change_json, change_of

MEMORY, CHUNK, ENTITY, HEIR = (NodeRef(*pair.split()) for pair in ("Memory m", "Chunk m/0", "Entity e", "Entity h"))
MENTION, MENTION_HEIR = EdgeRef("MENTIONS", MEMORY, ENTITY), EdgeRef("MENTIONS", MEMORY, HEIR)

START = Image(
    nodes={
        MEMORY: {
            "standing": "CURRENT",
            "label": "note",
            "importance": 0.5,
            "version": 1,
            "keys": ["p", "CURRENT", "note"],
        },
        CHUNK: {"standing": "CURRENT", "label": "note", "keys": ["p", "CURRENT", "note", "e"]},
        ENTITY: {"name": "Acme Inc"},
        HEIR: {"name": "Acme", "aliases": ["ACME"]},
    },
    edges={MENTION: {"role": "TOPIC"}},
)


def _set(image: Image, ref: NodeRef, **new: object) -> Image:
    properties = {name: value for name, value in {**image.nodes[ref], **new}.items() if value is not None}
    return replace(image, nodes={**image.nodes, ref: properties})


def _swap(image: Image, ref: NodeRef, name: str, old: str, new: str) -> Image:
    return _set(image, ref, **{name: [new if key == old else key for key in image.nodes[ref][name]]})  # type: ignore[union-attr] # lists in these images


def _relabel(image: Image, label: str) -> Image:
    old = str(image.nodes[MEMORY]["label"])
    for ref in (MEMORY, CHUNK):
        image = _swap(_set(image, ref, label=label), ref, "keys", old, label)
    return image


def _stand(image: Image, standing: str) -> Image:
    old = str(image.nodes[MEMORY]["standing"])
    for ref in (MEMORY, CHUNK):
        image = _swap(_set(image, ref, standing=standing), ref, "keys", old, standing)
    return image


def _merge(image: Image) -> Image:
    if "mergedInto" in image.nodes[ENTITY]:
        return image
    image = _set(_set(image, ENTITY, mergedInto="h"), HEIR, aliases=["ACME", "Acme Inc"])
    image = _swap(image, CHUNK, "keys", "e", "h")
    return replace(image, edges={MENTION_HEIR: {"role": "TOPIC"}})


DECISIONS = {
    "archive": lambda image: _stand(image, "ARCHIVED"),
    "promote": lambda image: _set(_relabel(image, "insight"), MEMORY, startingStrength=0.7),
    "promote again": lambda image: _set(_relabel(image, "framework"), MEMORY, startingStrength=0.9),
    "demote": lambda image: _set(image, MEMORY, importance=float(image.nodes[MEMORY]["importance"]) / 2),
    "merge": _merge,
}


def _apply(image: Image, change: Change, kept: list[Kept]) -> tuple[Image, list[Kept]]:
    """The image after undoing `change`, as the store would write it, and what the later changes became."""
    plan = undo(change, now=image, later=kept)
    assert plan.obstacles == ()
    for ref, new in plan.set.items():
        image = _set(image, ref, **new)
    edges = {ref: p for ref, p in image.edges.items() if ref not in plan.drop} | dict(plan.make)
    rewritten = {one.id: one for one in plan.rewritten}
    return replace(image, edges=edges), [rewritten.get(one.id, one) for one in kept]


@given(st.lists(st.sampled_from(sorted(DECISIONS)), max_size=7), st.randoms(use_true_random=False))
def test_decisions_taken_back_in_any_order_leave_exactly_what_was_there(names: list[str], random: object) -> None:
    image, kept = START, []
    for index, name in enumerate(names):
        after = _set(DECISIONS[name](image), MEMORY, version=image.nodes[MEMORY]["version"] + 1)  # type: ignore[operator] # a number
        kept.append(Kept(str(index), difference(image, after)))
        image = after
    while kept:
        one = kept.pop(random.randrange(len(kept)))  # type: ignore[attr-defined] # hypothesis' Random
        earlier = [k for k in kept if int(k.id) < int(one.id)]
        later = [k for k in kept if int(k.id) > int(one.id)]
        image, later = _apply(image, one.change, later)
        kept = earlier + later
    assert image == START


def test_undoing_the_earlier_of_two_leaves_what_the_later_made() -> None:
    promoted = DECISIONS["promote"](START)
    again = DECISIONS["promote again"](promoted)
    later = [Kept("2", difference(promoted, again))]
    image, _ = _apply(again, difference(START, promoted), later)
    assert image.nodes[MEMORY]["label"] == "framework"
    assert image.nodes[MEMORY]["startingStrength"] == 0.9


def test_a_change_by_other_means_is_an_obstacle_and_named() -> None:
    archived = DECISIONS["archive"](START)
    meanwhile = _set(archived, MEMORY, standing="SUPERSEDED")
    plan = undo(difference(START, archived), now=meanwhile, later=[])
    assert plan.obstacles == ("standing of m has changed since",)


def test_an_untouched_property_that_changed_meanwhile_stays_as_it_is() -> None:
    archived = DECISIONS["archive"](START)
    meanwhile = _set(archived, MEMORY, retrievals=9, version=7)
    image, _ = _apply(meanwhile, difference(START, archived), [])
    assert image.nodes[MEMORY] == {**START.nodes[MEMORY], "retrievals": 9, "version": 7}


def test_a_chunk_made_again_is_no_obstacle_and_a_record_that_is_gone_is() -> None:
    archived = DECISIONS["archive"](START)
    change = difference(START, archived)
    without_chunk = replace(archived, nodes={ref: p for ref, p in archived.nodes.items() if ref != CHUNK})
    assert undo(change, now=without_chunk, later=[]).obstacles == ()
    assert set(undo(change, now=Image({}, {}), later=[]).obstacles) == {"m is gone"}


def test_a_link_made_again_by_somebody_else_is_an_obstacle() -> None:
    after = _merge(START)
    meanwhile = replace(after, edges={**after.edges, MENTION: {"role": "PARTICIPANT"}})
    plan = undo(difference(START, after), now=meanwhile, later=[])
    assert plan.obstacles == ("the link MENTIONS from m has changed since",)


@given(st.lists(st.sampled_from(sorted(DECISIONS)), max_size=4))
def test_a_change_survives_being_stored(names: list[str]) -> None:
    image = START
    for name in names:
        image = DECISIONS[name](image)
    change = difference(START, image)
    assert change_of(change_json(change)) == change


def test_merged_names_every_node_and_end() -> None:
    change = difference(START, _merge(START))
    assert merged([change]) == {CHUNK, ENTITY, HEIR, MEMORY}


def test_nothing_changed_is_no_change() -> None:
    assert not difference(START, START)
    assert Change((PropertyChange(MEMORY, "label", "a", "b"),))
