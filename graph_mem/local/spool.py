"""What an export has read so far, in a file beside its target: corrected, gone on with, and written out in order."""

import sqlite3
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Self

from graph_mem.core.archive import FIRST_KINDS, KINDS, LAST_EDGES, LAST_KINDS, Edge, End, Node, read, written
from graph_mem.errors import InvalidInput

_TABLES = """
PRAGMA secure_delete = ON;
CREATE TABLE IF NOT EXISTS node (kind TEXT, key TEXT, record TEXT, line TEXT, PRIMARY KEY (kind, key));
CREATE INDEX IF NOT EXISTS node_record ON node (record);
CREATE TABLE IF NOT EXISTS edge (type TEXT, start_kind TEXT, start TEXT, end_kind TEXT, "end" TEXT, id TEXT,
  start_record TEXT, end_record TEXT, line TEXT, PRIMARY KEY (type, start, "end", id));
CREATE INDEX IF NOT EXISTS edge_start ON edge (start_record);
CREATE INDEX IF NOT EXISTS edge_end ON edge (end_record);
CREATE TABLE IF NOT EXISTS note (name TEXT PRIMARY KEY, value TEXT);
"""
_NODES = "SELECT line FROM node WHERE kind = ? ORDER BY key"
_EDGES = """
SELECT line FROM edge AS e WHERE (type IN (SELECT value FROM json_each(?))) = ?
  AND EXISTS (SELECT 1 FROM node WHERE kind = e.start_kind AND key = e.start)
  AND EXISTS (SELECT 1 FROM node WHERE kind = e.end_kind AND key = e."end")
ORDER BY type, start, "end", id
"""


class Spool:
    """Nodes and edges by their keys; what is added again replaces what was there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch(mode=0o600)
        self._file = sqlite3.connect(path, isolation_level="IMMEDIATE")
        self._file.executescript(_TABLES)

    @classmethod
    def beside(cls, target: Path) -> Self:
        """The spool of an export to `target`. Errors: InvalidInput if that exists."""
        if target.exists():
            raise InvalidInput(f"{target} exists already; an export makes a new file.", path=("FILE",))
        return cls(target.with_name(f"{target.name}.partial"))

    def note(self, name: str, default: str) -> str:
        """What was noted under `name`; `default` is noted if nothing was."""
        with self._file:
            self._file.execute("INSERT OR IGNORE INTO note VALUES (?, ?)", (name, default))
        return self._file.execute("SELECT value FROM note WHERE name = ?", (name,)).fetchone()[0]

    def has(self, name: str) -> bool:
        return self._file.execute("SELECT 1 FROM note WHERE name = ?", (name,)).fetchone() is not None

    def add(self, nodes: Iterable[Node] = (), edges: Iterable[Edge] = ()) -> None:
        with self._file:
            self._file.executemany("INSERT OR REPLACE INTO node VALUES (?, ?, ?, ?)", map(_node, nodes))
            self._file.executemany("INSERT OR REPLACE INTO edge VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", map(_edge, edges))

    def forget(self, records: Collection[str]) -> None:
        """Drop these records with all that belongs to them and every edge from or to it."""
        one = [(record,) for record in records]
        with self._file:
            for statement in (
                "DELETE FROM node WHERE record = ?",
                "DELETE FROM edge WHERE start_record = ?",
                "DELETE FROM edge WHERE end_record = ?",
            ):
                self._file.executemany(statement, one)

    def forget_kind(self, kind: str) -> None:
        """Drop every node of a kind with the edges that begin at one."""
        with self._file:
            self._file.execute("DELETE FROM node WHERE kind = ?", (kind,))
            self._file.execute("DELETE FROM edge WHERE start_kind = ?", (kind,))

    def unknown(self, nodes: Iterable[Node]) -> list[Node]:
        """Those of `nodes` that were never added."""
        look = "SELECT 1 FROM node WHERE kind = ? AND key = ?"
        return [one for one in nodes if self._file.execute(look, (one.kind, one.key)).fetchone() is None]

    def body(self) -> Iterator[Node | Edge]:
        """Everything in the order of an archive; an edge without one of its ends is left out."""
        for last in (False, True):
            for kind in sorted(KINDS, key=lambda kind: kind not in FIRST_KINDS):
                if (kind in LAST_KINDS) == last:
                    yield from self._lines(_NODES, (kind,))
            yield from self._lines(_EDGES, ('["' + '","'.join(LAST_EDGES) + '"]', last))

    def _lines(self, statement: str, given: tuple[object, ...]) -> Iterator[Node | Edge]:
        for (line,) in self._file.execute(statement, given):
            made = read(line)
            assert isinstance(made, (Node, Edge))  # noqa: S101 # nothing else is ever added
            yield made

    def clear(self) -> None:
        """Drop everything, the bytes included."""
        with self._file:
            for table in ("node", "edge", "note"):
                self._file.execute(f"DELETE FROM {table}")  # noqa: S608 # our own three names

    def close(self) -> None:
        self._file.close()

    def remove(self) -> None:
        """Close and delete the file."""
        self.close()
        for suffix in ("", "-journal"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)


def _node(node: Node) -> tuple[str, str, str, str]:
    return node.kind, node.key, node.record, written(node)


def _edge(edge: Edge) -> tuple[str, ...]:
    start, end = edge.start, edge.end
    ends = (start.kind, start.key, end.kind, end.key)
    return edge.type, *ends, edge.properties.get("id", ""), _record(start), _record(end), written(edge)


def _record(end: End) -> str:
    """The record that a node belongs to, as far as its key tells: a chunk's names its memory."""
    return end.key.partition("/")[0] if end.kind == "Chunk" else end.key
