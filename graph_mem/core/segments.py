"""How a long text is divided: segments (paragraphs, speaker turns) for comparing versions, chunks for the index.

Positions are code points of the text, ends exclusive. Time is linear in the length of the text.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from graph_mem.core.model import token
from graph_mem.core.text import cut_before, normal_form

_PARAGRAPH = re.compile(r"(?:\n[^\S\n]*\n|\u2029)\s*")
_LINE = re.compile(r"\n\s*")
_TURN = re.compile(
    r"""^[^\S\n]*(?:[>*•-][^\S\n]+)?                                  # quotation or list mark
    (?:[\[(]?\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d{1,3})?[\])]?[^\S\n]*(?:[-–][^\S\n]*)?)?    # 00:01:23
    (?:\*\*)?(?P<speaker>[^\W\d_][\w.'’()-]{0,39}(?:[^\S\n][\w.'’()-]{1,39}){0,3}?)(?:\*\*)?
    (?:[^\S\n]*[\[(]\d{1,2}:\d{2}(?::\d{2})?[\])])?                   # (00:01:23)
    [^\S\n]?(?:[:](?:\*\*)?(?=\s|\Z)|：)""",
    re.MULTILINE | re.VERBOSE,
)
_MAX_SPEAKER = 40
_SENTENCE_END = re.compile(
    r"""[.!?…]+["'”’)\]»]*(?=\s)      # needs a space after it: 3.14, example.org
    |[。！？｡．]+[」』）】”’]*
    |[؟۔।॥။។៕።]+
    |\n""",
    re.VERBOSE,
)
_DENSE = re.compile("[^\x00-\u024f\u2000-\u206f]")
_DENSE_COST = 4


@dataclass(frozen=True, slots=True)
class Span:
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Segment:
    """A paragraph or a speaker's turn, with the space after it."""

    start: int
    end: int
    speaker: str | None = None


def speaker(text: str) -> str | None:
    """The speaker label at the very start of a turn: `Ana` of `[00:01] Ana: good morning`."""
    turn = _TURN.match(text)
    return turn["speaker"] if turn and len(turn["speaker"]) <= _MAX_SPEAKER else None


def segments(text: str) -> list[Segment]:
    """Paragraphs and speaker turns of `text`, in order; together they are exactly the text.

    A text that has neither is divided by lines.
    """
    turns = {match.start(): match["speaker"] for match in _TURN.finditer(text) if len(match["speaker"]) <= _MAX_SPEAKER}
    borders = {match.end() for match in _PARAGRAPH.finditer(text)} | turns.keys()
    if len(borders - {0, len(text)}) == 0:
        borders = {match.end() for match in _LINE.finditer(text)} | borders
    places = sorted({0, *borders, len(text)})
    found = (Segment(start, end, turns.get(start)) for start, end in pairwise(places))
    return _without_blank_head(text, list(found))


def _without_blank_head(text: str, found: list[Segment]) -> list[Segment]:
    """Blank space before the first segment belongs to it."""
    if len(found) > 1 and text[: found[0].end].isspace():
        return [Segment(0, found[1].end, found[1].speaker), *found[2:]]
    return found


def sketch(text: str, *, size: int = 32) -> tuple[str, ...]:
    """At most `size` index tokens that an edited copy of `text` very likely shares some of.

    The smallest of the hashes of all segments: texts with half of their segments in common share none with a
    probability of about (2/3) ** size. Source: Broder 1997, bottom-k sketch.
    """
    return tuple(sorted({token("segment", key) for key in segment_keys(text, segments(text))})[:size])


def segment_keys(text: str, found: Sequence[Segment]) -> list[str]:
    """The normal form of each segment: equal for an unchanged one."""
    return [normal_form(text[segment.start : segment.end]) for segment in found]


def _cost(text: str) -> int:
    """The number of Latin characters that make as many tokens.

    A word-piece model makes one token of about four of these, and of each character of most other scripts.
    """
    return len(text) + (_DENSE_COST - 1) * (0 if text.isascii() else len(_DENSE.findall(text)))


def chunks(text: str, *, whole_chars: int = 1800, target_chars: int = 1200) -> list[Span]:
    """Spans of `text` for the index, in order, disjoint, without surrounding space, covering all that is not space.

    A text up to `whole_chars` is one chunk, as is a single paragraph; longer ones are filled to about `target_chars`
    at the borders of segments, then sentences, then words. No chunk is longer than `whole_chars`; characters outside
    Latin script count four times, so a chunk of prose stays within the 512 tokens of the default model.
    Errors: ValueError unless 64 <= target_chars <= whole_chars.
    """
    if not 64 <= target_chars <= whole_chars:
        raise ValueError(f"target_chars {target_chars}, whole_chars {whole_chars}: expected 64 <= target <= whole")
    if _cost(text) <= whole_chars:
        return list(_trimmed(text, [Span(0, len(text))]))
    return list(_trimmed(text, _packed(text, whole=whole_chars, target=target_chars)))


def _packed(text: str, *, whole: int, target: int) -> Iterator[Span]:
    start = end = filled = 0
    for piece in _pieces(text, whole=whole, target=target):
        cost = _cost(text[piece.start : piece.end])
        heading = filled * 8 < whole and filled + cost <= whole
        if filled and not heading and filled + cost > target:
            yield Span(start, end)
            start, filled = piece.start, 0
        end, filled = piece.end, filled + cost
    yield Span(start, end)


def _pieces(text: str, *, whole: int, target: int) -> Iterator[Span]:
    """Segments; the sentences of those over `whole`; the parts of sentences over `whole`. Together the text."""
    for segment in segments(text):
        if _cost(text[segment.start : segment.end]) <= whole:
            yield Span(segment.start, segment.end)
            continue
        for sentence in _sentences(text, segment):
            if _cost(text[sentence.start : sentence.end]) <= whole:
                yield sentence
            else:
                yield from _parts(text, sentence, target=target)


def _sentences(text: str, segment: Segment) -> Iterator[Span]:
    start = segment.start
    for match in _SENTENCE_END.finditer(text, segment.start, segment.end):
        yield Span(start, match.end())
        start = match.end()
    if start < segment.end:
        yield Span(start, segment.end)


def _parts(text: str, span: Span, *, target: int) -> Iterator[Span]:
    start = span.start
    while start < span.end:
        end = _part_end(text, start, min(span.end, start + target), target=target)
        yield Span(start, end)
        start = end


def _part_end(text: str, start: int, limit: int, *, target: int) -> int:
    """Where a part from `start` ends: after the last space of its second half, else at a whole character."""
    while _cost(text[start:limit]) > target:
        limit = start + max(1, (limit - start) * target // _cost(text[start:limit]))
    if limit == len(text) or text[limit - 1].isspace():
        return limit
    middle = start + (limit - start) // 2
    for place in range(limit - 1, middle, -1):
        if text[place].isspace():
            return place + 1
    return max(cut_before(text, limit), start + 1)


def _trimmed(text: str, spans: Sequence[Span] | Iterator[Span]) -> Iterator[Span]:
    for span in spans:
        start, end = span.start, span.end
        while start < end and text[start].isspace():
            start += 1
        while start < end and text[end - 1].isspace():
            end -= 1
        if start < end:
            yield Span(start, end)
