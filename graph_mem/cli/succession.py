"""How a chain of replacements looks in a terminal."""

from datetime import datetime

from rich.text import Text
from rich.tree import Tree

from graph_mem.core.model import FAR, Fact, Record, RecordId, Relation, RelationState, Standing
from graph_mem.core.supersession import Chain
from graph_mem.core.text import how_many

_WIDEST = 100
_STYLE = {Standing.CURRENT: "bold green", Standing.PROVISIONAL: "yellow"}


def tree(chain: Chain, *, around: RecordId) -> Tree:
    """Every head with what it replaced below it, the newest first. `around` is the record that was asked for.

    A record that replaced one other is followed by it on the same level: a chain of sixty is a list, not a staircase.
    """
    records = {record.id: record for record in chain.records}
    below: dict[RecordId, list[Relation]] = {}
    for link in reversed(chain.links):
        if link.state is RelationState.ACTIVE:
            below.setdefault(link.from_id, []).append(link)
    told = f"{how_many(len(records), 'record')}, {how_many(len(chain.links), 'replacement')}"
    root = Tree(Text(told, style="dim"), hide_root=len(chain.heads) == 1)
    shown: set[RecordId] = set()
    for head in chain.heads:
        _grow(root.add(_line(head, around)), head.id, records=records, below=below, shown=shown, around=around)
    for link in chain.links:
        if link.state is RelationState.RETRACTED:
            root.add(Text(f"{link.from_id} does not replace {link.to_id}: the link was marked as wrong", style="dim"))
    return root


def _grow(
    branch: Tree,
    id: RecordId,
    *,
    records: dict[RecordId, Record],
    below: dict[RecordId, list[Relation]],
    shown: set[RecordId],
    around: RecordId,
) -> None:
    links = below.get(id, [])
    while links:
        for link in links:
            if link.to_id in shown:
                branch.add(Text(f"↑ {link.to_id}, as above", style="dim"))
                continue
            shown.add(link.to_id)
            twig = branch.add(_line(records[link.to_id], around, link))
            if len(links) > 1:
                _grow(twig, link.to_id, records=records, below=below, shown=shown, around=around)
        links = below.get(links[0].to_id, []) if len(links) == 1 and links[0].to_id in shown else []


def _line(record: Record, around: RecordId, link: Relation | None = None) -> Text:
    words = record.statement if isinstance(record, Fact) else record.title or record.text or ""
    line = Text("▸ " if record.id == around else "", style="bold")
    line.append(_short(words), style=_STYLE.get(record.standing, ""))
    line.append(f"  {record.standing.lower()} {_span(record)}  {record.id}", style="dim")
    if link is not None:
        why = f": {_short(link.reason)}" if link.reason else ""
        keeps = "" if link.retires else ", without retiring it"
        line.append(f"\n  replaced {_day(link.at)} by {link.by}{keeps}{why}", style="dim")
    return line


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
