"""By what a long text is recognised when it is saved again with edits."""

from graph_mem.core.model import Place, token
from graph_mem.core.segments import segments
from graph_mem.core.text import normal_form, text_hash

MOST = 64
_TELLING_CHARACTERS = 24


def fingerprints(place: Place, text: str) -> list[str]:
    """Index keys of segments of `text`, within its partition and scope: the 64 smallest, all of a shorter text.

    Two texts that share half their segments share about as many of these as they are, so that one of 64 in common
    is all but certain. Segments that could stand anywhere, `Yes.` or `Thank you!`, are left out.
    Source: Broder 1997, the bottom-k sketch.
    """
    pieces = {normal_form(text[segment.start : segment.end]) for segment in segments(text)}
    telling = [piece for piece in pieces if len(piece) >= _TELLING_CHARACTERS]
    keys = (token("segment", place.partition_token, place.scope_token, text_hash(piece)) for piece in telling)
    return sorted(keys)[:MOST]
