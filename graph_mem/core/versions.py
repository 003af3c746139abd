"""A long text saved again with edits: what is new in it, and the stored text with that put in place."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from graph_mem.core.segments import Segment, Span, segment_keys, segments
from graph_mem.core.vocabulary import Label

MIN_CHARS = 2000
MIN_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Merge:
    """What a text saved again makes of the stored one.

    `text` is the new full text, the stored one itself if nothing is new. `edited` and `sent` are spans of
    `text`: what is new in it, and all that the new save held. `replaced` are spans of the stored text that left it.
    `unchanged_share` is the part of the segments of the longer of the two that both have, 0..1.
    """

    text: str
    edited: tuple[Span, ...]
    sent: tuple[Span, ...]
    replaced: tuple[Span, ...]
    unchanged_share: float

    @property
    def changed(self) -> bool:
        return bool(self.edited or self.replaced)

    def fresh(self, *, label_won: bool) -> tuple[Span, ...]:
        """The spans whose age counts from now: everything if the new label won, else what was sent again."""
        return (Span(0, len(self.text)),) if label_won else self.sent


def is_new_version(
    stored: str, sent: str, *, same_uri: bool, min_chars: int = MIN_CHARS, min_share: float = MIN_SHARE
) -> bool:
    """Whether `sent` is an edited copy of `stored`, and not another text.

    Both have at least `min_chars`, and they share `min_share` of their segments or name the same source.
    """
    if min(len(stored), len(sent)) < min_chars:
        return False
    return same_uri or merge_versions(stored, sent, whole=False).unchanged_share >= min_share


def merge_versions(stored: str, sent: str, *, whole: bool) -> Merge:
    """`stored` with the segments that `sent` has edited or added put in their place.

    `whole` says that `sent` is all of the source as it is now (the same uri), so its bytes are the result and what it
    lacks is gone. Otherwise it may be a part: what it lacks stays, and where it has fewer segments than stand before
    its first (after its last) known one, those nearest to the known one were edited. Sending nothing new changes
    nothing.
    """
    old, new = segments(stored), segments(sent)
    pairs = _aligned(segment_keys(stored, old), segment_keys(sent, new))
    share = len(pairs) / max(len(old), len(new), 1)
    gaps = list(_gaps(pairs, len(old), len(new), whole=whole))
    replaced = tuple(Span(old[i].start, old[i].end) for gap in gaps for i in gap.replaced)
    if not replaced and not any(gap.edited for gap in gaps):
        return Merge(stored, (), _joined([Span(old[i].start, old[i].end) for i, _ in pairs]), (), share)
    pieces = _pieces(stored, sent, old, new, gaps)
    return _merged(pieces, _separator(stored, old), replaced=replaced, share=share)


@dataclass(frozen=True, slots=True)
class _Gap:
    """What lies between two known segments, and the known one after it: positions of stored and of sent segments."""

    kept_before: range
    replaced: range
    edited: range
    kept_after: range
    known: range


def _gaps(pairs: Sequence[tuple[int, int]], old: int, new: int, *, whole: bool) -> Iterator[_Gap]:
    i = j = 0
    for at_old, at_new in (*pairs, (old, new)):
        head, tail = i == 0, at_old == old
        in_old, in_new = range(i, at_old), range(j, at_new)
        surplus = max(0, len(in_old) - len(in_new)) if head != tail or not in_new else 0
        first = surplus if not whole and (head or not in_new) else 0
        last = surplus if not whole and tail and in_new else 0
        left = len(in_old) - last
        yield _Gap(in_old[:first], in_old[first:left], in_new, in_old[left:], range(at_new, at_new + (not tail)))
        i, j = at_old + 1, at_new + 1


@dataclass(frozen=True, slots=True)
class _Piece:
    text: str
    sent: bool
    edited: bool


def _pieces(
    stored: str, sent: str, old: Sequence[Segment], new: Sequence[Segment], gaps: Sequence[_Gap]
) -> Iterator[_Piece]:
    for gap in gaps:
        for i in gap.kept_before:
            yield _Piece(stored[old[i].start : old[i].end], sent=False, edited=False)
        for j in gap.edited:
            yield _Piece(sent[new[j].start : new[j].end], sent=True, edited=True)
        for i in gap.kept_after:
            yield _Piece(stored[old[i].start : old[i].end], sent=False, edited=False)
        for j in gap.known:
            yield _Piece(sent[new[j].start : new[j].end], sent=True, edited=False)


def _merged(pieces: Iterator[_Piece], separator: str, *, replaced: tuple[Span, ...], share: float) -> Merge:
    parts: list[str] = []
    edited: list[Span] = []
    sent: list[Span] = []
    at = 0
    for piece in pieces:
        if parts and not parts[-1][-1:].isspace():
            parts.append(separator)
            at += len(separator)
        parts.append(piece.text)
        span = Span(at, at + len(piece.text))
        edited += [span] if piece.edited else []
        sent += [span] if piece.sent else []
        at = span.end
    return Merge("".join(parts), _joined(edited), _joined(sent), replaced, share)


def _separator(text: str, found: Sequence[Segment]) -> str:
    """The space after the first segment of a text."""
    first = text[: found[0].end] if found else ""
    return first[len(first.rstrip()) :] or "\n\n"


def _joined(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Spans in order, neighbours as one."""
    joined: list[Span] = []
    for span in spans:
        if joined and joined[-1].end == span.start:
            joined[-1] = Span(joined[-1].start, span.end)
        else:
            joined.append(span)
    return tuple(joined)


def _aligned(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Positions of equal segments, rising in both.

    Patience alignment: segments that occur once in each, as many as stand in the same order; between these, whatever
    is equal from either end. Source: Cohen 2010, patience diff.
    """
    once_old, once_new = ({key for key, count in Counter(keys).items() if count == 1} for keys in (old, new))
    where = {key: i for i, key in enumerate(old) if key in once_old}
    anchors = _rising([(where[key], j) for j, key in enumerate(new) if key in once_new and key in where])
    pairs: list[tuple[int, int]] = []
    i = j = 0
    for at_old, at_new in (*anchors, (len(old), len(new))):
        pairs += _from_both_ends(old, new, range(i, at_old), range(j, at_new))
        if at_old < len(old):
            pairs.append((at_old, at_new))
        i, j = at_old + 1, at_new + 1
    return pairs


def _from_both_ends(old: Sequence[str], new: Sequence[str], in_old: range, in_new: range) -> list[tuple[int, int]]:
    size = min(len(in_old), len(in_new))
    head = next((n for n in range(size) if old[in_old[n]] != new[in_new[n]]), size)
    room = size - head
    tail = next((n for n in range(room) if old[in_old[-1 - n]] != new[in_new[-1 - n]]), room)
    first = list(zip(in_old[:head], in_new[:head], strict=True))
    return first + list(zip(in_old[len(in_old) - tail :], in_new[len(in_new) - tail :], strict=True))


def _rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest subsequence of `pairs` (sorted by their second) that rises in the first too."""
    ends: list[int] = []
    holders: list[int] = []
    before: list[int] = []
    for n, (i, _) in enumerate(pairs):
        place = bisect_left(ends, i)
        if place == len(ends):
            ends.append(i)
            holders.append(n)
        else:
            ends[place], holders[place] = i, n
        before.append(holders[place - 1] if place else -1)
    chain: list[tuple[int, int]] = []
    at = holders[-1] if holders else -1
    while at >= 0:
        chain.append(pairs[at])
        at = before[at]
    return chain[::-1]


def winning_label(stored: Label, sent: Label) -> Label:
    """Which label a text keeps that was saved again under another one: a position before a finding, then the one of
    higher default importance, on a tie the newer."""
    rank = (stored.position, stored.default_importance)
    return stored if rank > (sent.position, sent.default_importance) else sent
