"""How a chain of replacements looks in a terminal."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from rich.text import Text
from rich.tree import Tree

from graph_mem.core.model import FAR, Fact, Record, RecordId, Relation, RelationState, Standing
from graph_mem.core.supersession import Chain
from graph_mem.core.text import how_many

_WIDEST = 100
_STYLE = {Standing.CURRENT: "bold green", Standing.PROVISIONAL: "yellow"}


def tree(chain: Chain, *, around: RecordId, names: Mapping[str, str]) -> Tree:
    """Every head with what it replaced below it, the newest first. `around` is the record that was asked for.

    Records that replaced one another in turn stand in one line, with an arrow between; only where a record replaced
    several does the line branch. `names` are those of users.
    """
    records = {record.id: record for record in chain.records}
    below: dict[RecordId, list[Relation]] = {}
    for link in reversed(chain.links):
        if link.state is RelationState.ACTIVE:
            below.setdefault(link.from_id, []).append(link)
    told = f"{how_many(len(records), 'record')}, {how_many(len(chain.links), 'replacement')}"
    root = Tree(Text(told, style="dim"), hide_root=len(chain.heads) == 1)
    drawing = _Drawing(records, below, around, names)
    for head in chain.heads:
        drawing.grow(root, head.id)
    for link in chain.links:
        if link.state is RelationState.RETRACTED:
            root.add(Text(f"{link.from_id} does not replace {link.to_id}: the link was marked as wrong", style="dim"))
    return root


@dataclass(frozen=True, slots=True)
class _Drawing:
    records: Mapping[RecordId, Record]
    below: Mapping[RecordId, list[Relation]]
    around: RecordId
    names: Mapping[str, str]
    shown: set[RecordId] = field(default_factory=set[RecordId])

    def grow(self, branch: Tree, id: RecordId, link: Relation | None = None) -> None:
        """Add the line that begins with a record, and the branches at its end."""
        parts = [self._record(id)] if link is None else [self._record(id), Text("\n  "), self._replaced(link)]
        while len(links := self.below.get(id, [])) == 1 and (link := links[0]).to_id not in self.shown:
            id = link.to_id
            parts += [Text("\n↓ ", style="dim"), self._replaced(link), Text("\n"), self._record(id)]
        twig = branch.add(Text.assemble(*parts))
        for link in links:
            if link.to_id in self.shown:
                twig.add(Text(f"↑ {link.to_id}, as above", style="dim"))
            else:
                self.grow(twig, link.to_id, link)

    def _record(self, id: RecordId) -> Text:
        self.shown.add(id)
        record = self.records[id]
        words = record.statement if isinstance(record, Fact) else record.title or record.text or ""
        line = Text("▸ " if id == self.around else "", style="bold")
        line.append(_short(words), style=_STYLE.get(record.standing, ""))
        return line.append(f"  {record.standing.lower()} {_span(record)}  {id}", style="dim")

    def _replaced(self, link: Relation) -> Text:
        why = f": {_short(link.reason)}" if link.reason else ""
        keeps = "" if link.retires else ", without retiring it"
        return Text(f"replaced {_day(link.at)} by {self.names.get(link.by, link.by)}{keeps}{why}", style="dim")


def _short(words: str) -> str:
    line = " ".join(words.split())
    return line if len(line) <= _WIDEST else line[: _WIDEST - 1] + "…"


def _span(record: Record) -> str:
    interval = record.interval
    if isinstance(record, Fact):
        end = "" if interval.valid_to >= FAR else f" to {_day(interval.valid_to)}"
        return f"from {_day(interval.valid_from)}{end}"
    return f"saved {_day(record.created_at)}"


def _day(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M}"
