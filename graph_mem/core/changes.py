"""What a kept proposal changed, node by node and edge by edge, and how exactly that is taken back.

An `Image` is the part of the graph that a decision may touch, every property of it. The `Change` between the image
before and the one after is what undoing needs. Several decisions on one record can be undone in any order: where a
later one stands on what an earlier one left, undoing the earlier hands its `before` on to the later.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

Value = bool | int | float | str | list[str] | list[int] | list[float] | None
Properties = Mapping[str, Value]

COUNTED = frozenset({"version"})
"""Counts of changes: restored where untouched since, else counted on, never a reason to refuse."""
SETS = frozenset({"keys", "aliases"})
"""Lists that several writers add to and take from: undone element by element."""


class NodeRef(NamedTuple):
    label: str
    id: str


class EdgeRef(NamedTuple):
    """A relationship; `id` is empty for those that have none, of which there is one between two nodes."""

    type: str
    start: NodeRef
    end: NodeRef
    id: str = ""


@dataclass(frozen=True, slots=True)
class Image:
    nodes: Mapping[NodeRef, Properties]
    edges: Mapping[EdgeRef, Properties]


@dataclass(frozen=True, slots=True)
class PropertyChange:
    node: NodeRef
    name: str
    before: Value
    after: Value


@dataclass(frozen=True, slots=True)
class SetChange:
    """Elements that went from a list, each with its place, and elements that came."""

    node: NodeRef
    name: str
    removed: tuple[tuple[int, str], ...]
    added: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EdgeChange:
    """A relationship's properties; None where it was not there."""

    edge: EdgeRef
    before: Properties | None
    after: Properties | None


@dataclass(frozen=True, slots=True)
class Change:
    properties: tuple[PropertyChange, ...] = ()
    sets: tuple[SetChange, ...] = ()
    edges: tuple[EdgeChange, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.properties or self.sets or self.edges)


@dataclass(frozen=True, slots=True)
class Kept:
    """The change of another decision that still stands."""

    id: str
    change: Change


@dataclass(frozen=True, slots=True)
class Undo:
    """How to take a change back: what to set, which edges to make or remove, and what others' changes become.

    `obstacles` say why it cannot be done exactly; then nothing may be done.
    """

    set: Mapping[NodeRef, Properties]
    make: Mapping[EdgeRef, Properties]
    drop: tuple[EdgeRef, ...]
    rewritten: tuple[Kept, ...]
    obstacles: tuple[str, ...]


C = TypeVar("C", PropertyChange, SetChange)


def difference(before: Image, after: Image) -> Change:
    """The change from one image to the other, over the nodes that are in both."""
    properties: list[PropertyChange] = []
    sets: list[SetChange] = []
    for ref in sorted(before.nodes.keys() & after.nodes.keys()):
        old, new = before.nodes[ref], after.nodes[ref]
        for name in sorted(old.keys() | new.keys()):
            if old.get(name) == new.get(name):
                continue
            if name in SETS:
                sets.append(_set_change(ref, name, _strings(old.get(name)), _strings(new.get(name))))
            else:
                properties.append(PropertyChange(ref, name, old.get(name), new.get(name)))
    edges = [
        EdgeChange(ref, before.edges.get(ref), after.edges.get(ref))
        for ref in sorted(before.edges.keys() | after.edges.keys())
        if before.edges.get(ref) != after.edges.get(ref)
    ]
    return Change(tuple(properties), tuple(sets), tuple(edges))


def undo(change: Change, *, now: Image, later: Sequence[Kept]) -> Undo:
    """How to take `change` back from the graph as it is `now`; `later` are the decisions since that stand, in order."""
    plan = _Plan(now, later)
    for one in change.properties:
        plan.property(one)
    for one in change.sets:
        plan.elements(one)
    for one in change.edges:
        plan.edge(one)
    return plan.result()


class _Plan:
    """An `Undo` in the making."""

    def __init__(self, now: Image, later: Sequence[Kept]) -> None:
        self._now = now
        self._later = {kept.id: kept.change for kept in later}
        self._touched: dict[str, None] = {}
        self._set: dict[NodeRef, dict[str, Value]] = {}
        self._make: dict[EdgeRef, Properties] = {}
        self._drop: list[EdgeRef] = []
        self._obstacles: list[str] = []

    def result(self) -> Undo:
        rewritten = tuple(Kept(id, self._later[id]) for id in self._touched)
        return Undo(self._set, self._make, tuple(self._drop), rewritten, tuple(self._obstacles))

    def property(self, one: PropertyChange) -> None:
        heir = next(((id, c) for id, c in self._changes() if _find(c.properties, one)), None)
        if heir is not None:
            id, change = heir
            self._rewrite(id, replace(change, properties=_handed_on(change.properties, one)))
            return
        node = self._now.nodes.get(one.node)
        if node is None:
            self._missing(one.node)
        elif node.get(one.name) == one.after:
            self._set.setdefault(one.node, {})[one.name] = one.before
        elif one.name in COUNTED:
            current = node.get(one.name)
            self._set.setdefault(one.node, {})[one.name] = current + 1 if isinstance(current, int) else current
        else:
            self._obstacles.append(f"{one.name} of {one.node.id} has changed since")

    def elements(self, one: SetChange) -> None:
        for id, change in self._changes():
            found = _find(change.sets, one)
            if found and set(one.added) & {element for _, element in found.removed}:
                taken = tuple(pair for pair in found.removed if pair[1] not in one.added)
                merged = replace(found, removed=(*taken, *one.removed))
                self._rewrite(id, replace(change, sets=tuple(merged if c is found else c for c in change.sets)))
                return
        node = self._now.nodes.get(one.node)
        if node is None:
            self._missing(one.node)
            return
        pending = self._set.get(one.node, {}).get(one.name)
        elements = [e for e in _strings(pending or node.get(one.name)) if e not in one.added]
        for index, element in sorted(one.removed):
            if element not in elements:
                elements.insert(index, element)
        self._set.setdefault(one.node, {})[one.name] = elements

    def edge(self, one: EdgeChange) -> None:
        for id, change in self._changes():
            found = next((c for c in change.edges if c.edge == one.edge), None)
            if found is not None:
                merged = replace(found, before=one.before)
                kept = tuple(merged if c is found else c for c in change.edges)
                self._rewrite(id, replace(change, edges=kept))
                return
        current = self._now.edges.get(one.edge)
        if current == one.before:
            return
        if current != one.after:
            self._obstacles.append(f"the link {one.edge.type} from {one.edge.start.id} has changed since")
        elif one.before is None:
            self._drop.append(one.edge)
        elif one.edge.start not in self._now.nodes or one.edge.end not in self._now.nodes:
            self._missing(one.edge.end if one.edge.start in self._now.nodes else one.edge.start)
        else:
            self._make[one.edge] = one.before

    def _changes(self) -> Iterator[tuple[str, Change]]:
        yield from list(self._later.items())

    def _rewrite(self, id: str, change: Change) -> None:
        self._later[id] = change
        self._touched[id] = None

    def _missing(self, ref: NodeRef) -> None:
        """Chunks are an index made again from their memory; anything else that is gone cannot be restored."""
        if ref.label != "Chunk":
            self._obstacles.append(f"{ref.id} is gone")


def merged(changes: Iterable[Change]) -> frozenset[NodeRef]:
    """Every node that any of `changes` names."""
    refs: set[NodeRef] = set()
    for change in changes:
        refs |= {c.node for c in change.properties} | {c.node for c in change.sets}
        refs |= {end for c in change.edges for end in (c.edge.start, c.edge.end)}
    return frozenset(refs)


def without(change: Change, gone: Collection[str]) -> Change:
    """`change` without what it says of the nodes in `gone` and their chunks."""

    def stays(ref: NodeRef) -> bool:
        return ref.id.partition("/")[0] not in gone

    return Change(
        tuple(c for c in change.properties if stays(c.node)),
        tuple(c for c in change.sets if stays(c.node)),
        tuple(c for c in change.edges if stays(c.edge.start) and stays(c.edge.end)),
    )


def _handed_on(properties: Sequence[PropertyChange], one: PropertyChange) -> tuple[PropertyChange, ...]:
    found = _find(properties, one)
    return tuple(replace(c, before=one.before) if c is found else c for c in properties)


def _find(changes: Sequence[C], one: C) -> C | None:
    return next((c for c in changes if (c.node, c.name) == (one.node, one.name)), None)


def _set_change(ref: NodeRef, name: str, old: Sequence[str], new: Sequence[str]) -> SetChange:
    return SetChange(
        ref,
        name,
        removed=tuple((index, element) for index, element in enumerate(old) if element not in new),
        added=tuple(element for element in new if element not in old),
    )


def _strings(value: Value) -> list[str]:
    return [str(element) for element in value] if isinstance(value, list) else []
