"""What an export is made of, and its lines: JSON, one node or edge each, between a header and a footer."""

import base64
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from graph_mem.core.model import place_of
from graph_mem.errors import ArchiveDamaged, ArchiveUnsupported

FORMAT = 1

KINDS: Mapping[str, str] = {
    "Event": "id",
    "Job": "id",
    "Organization": "id",
    "User": "id",
    "Client": "id",
    "Deal": "id",
    "ApiKey": "id",
    "Settings": "key",
    "Lease": "name",
    "Memory": "id",
    "Version": "id",
    "Chunk": "id",
    "Slot": "key",
    "Fact": "id",
    "Rejection": "key",
    "Entity": "id",
    "Policy": "id",
    "PolicyVersion": "id",
    "Variable": "id",
    "VariableVersion": "id",
    "Pin": "id",
    "ScratchNote": "id",
    "RunTrace": "id",
    "Trace": "id",
    "AccessEntry": "id",
    "Proposal": "key",
    "Snapshot": "proposalId",
    "Rehearsal": "recordId",
    "Tombstone": "key",
    "Idempotency": "key",
}
"""The label of each kind of node and the property it is known by, in the order in which they are read.

Events come first, then jobs: what happened since is then known, and of a record that was saved before, either its job
was read or it is READY.
"""

FIRST_KINDS = ("Organization",)
LAST_KINDS = ("Job",)
LAST_EDGES = ("MEMBER_OF",)
"""What an archive begins and ends with: another restore finds the organization there from the first batch on; nobody is
let in, and no worker begins, before everything else is there."""

_PEOPLE_AND_MARKS = frozenset({"User", "Lease"})
_OF_ORGANIZATIONS = frozenset(
    {"Client", "Deal", "ApiKey", "Settings", "Trace", "AccessEntry", "Tombstone", "Idempotency"}
)
"""Kinds that stand in no partition; who may see a node of another kind is told by its place."""

Properties: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class End:
    """One end of an edge: which node of which kind."""

    kind: str
    key: str


@dataclass(frozen=True, slots=True)
class Node:
    """A node with all its labels. `vector` is its embedding, packed as little-endian float32."""

    kind: str
    key: str
    labels: tuple[str, ...]
    properties: Properties
    vector: bytes | None = None

    @property
    def record(self) -> str:
        """The record that the node belongs to, or is."""
        owner = self.properties.get("memoryId") or self.properties.get("recordId")
        return owner if self.kind in ("Chunk", "Version", "Job", "Rehearsal", "Event") and owner else self.key


@dataclass(frozen=True, slots=True)
class Edge:
    type: str
    start: End
    end: End
    properties: Properties


@dataclass(frozen=True, slots=True)
class Model:
    """The embedding model that vectors were made with."""

    name: str
    dimension: int


@dataclass(frozen=True, slots=True)
class Header:
    """What an archive holds. `schema` is the newest migration of the database it was read from; `model` is None
    where the vectors were left out."""

    id: str
    schema: int
    made_at: int
    organizations: Mapping[str, str]
    model: Model | None


@dataclass(frozen=True, slots=True)
class Footer:
    """How many lines of each stand before it, and the SHA-256 of those lines."""

    nodes: int
    edges: int
    sha256: str


Line: TypeAlias = Header | Node | Edge | Footer


def kind_of(labels: tuple[str, ...]) -> str | None:
    """The kind of a node with these labels; a trace, which is in the access log too, is a trace."""
    return next((kind for kind in KINDS if kind in labels), None)


def astray(node: Node, organizations: Collection[str]) -> bool:
    """Whether a node is at no place, at another than its own words say, or in none of `organizations`."""
    if node.kind in _PEOPLE_AND_MARKS:
        return False
    if node.kind == "Organization":
        return node.key not in organizations
    given = node.properties
    if given.get("org") not in organizations:
        return True
    if node.kind in _OF_ORGANIZATIONS:
        return False
    if node.kind == "Job":
        return not given.get("partition")
    try:
        place = place_of(given)
    except (KeyError, ValueError):
        return True
    return (given.get("partition"), given.get("scope")) != (place.partition_token, place.scope_token)


def written(line: Line) -> str:
    """`line` as JSON."""
    return json.dumps(_document(line), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _document(line: Line) -> dict[str, Any]:
    match line:
        case Node():
            given: dict[str, Any] = {"node": line.kind, "key": line.key, "labels": line.labels}
            if line.vector is not None:
                given["vector"] = base64.b64encode(line.vector).decode()
            return {**given, "properties": line.properties}
        case Edge():
            ends = {"from": [line.start.kind, line.start.key], "to": [line.end.kind, line.end.key]}
            return {"edge": line.type, **ends, "properties": line.properties}
        case Header():
            model = {"name": line.model.name, "dimension": line.model.dimension} if line.model else None
            return {
                "archive": "graph-mem",
                "format": FORMAT,
                "id": line.id,
                "schema": line.schema,
                "madeAt": line.made_at,
                "organizations": line.organizations,
                "model": model,
            }
        case Footer():
            return {"end": {"nodes": line.nodes, "edges": line.edges, "sha256": line.sha256}}


def read(text: str | bytes) -> Line:
    """The line that `written` made.

    Errors: ArchiveDamaged for what is no such line, ArchiveUnsupported for a format that is not ours.
    """
    try:
        given = json.loads(text)
        return _line(given)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ArchiveDamaged(f"Found a line that is no part of an archive ({type(error).__name__}).") from error


def _line(given: dict[str, Any]) -> Line:
    if "node" in given:
        vector = given.get("vector")
        packed = None if vector is None else base64.b64decode(vector, validate=True)
        if given["node"] not in given["labels"] or given["node"] not in KINDS:
            raise ValueError(given["node"])
        return Node(given["node"], given["key"], tuple(given["labels"]), given["properties"], packed)
    if "edge" in given:
        return Edge(given["edge"], End(*given["from"]), End(*given["to"]), given["properties"])
    if "end" in given:
        return Footer(**given["end"])
    if given["archive"] != "graph-mem":
        raise ValueError(given["archive"])
    if given["format"] != FORMAT:
        raise ArchiveUnsupported(f"The archive has format {given['format']}, expected {FORMAT}.")
    model = cast("dict[str, Any] | None", given["model"])
    return Header(
        given["id"], given["schema"], given["madeAt"], given["organizations"], Model(**model) if model else None
    )
