import time

from hypothesis import given
from hypothesis import strategies as st

from graph_mem.core import versions as v
from graph_mem.core.segments import Span
from graph_mem.core.vocabulary import Label

LINES = st.lists(st.sampled_from([f"Line {n}." for n in range(12)]), min_size=1, max_size=20)
TURNS = [f"{'Ana' if n % 2 else 'Tom'}: this is what I have to say about point {n} of the agenda.\n" for n in range(60)]
TRANSCRIPT = "".join(TURNS)


def shown(text: str, spans: tuple[Span, ...]) -> str:
    return "|".join(text[span.start : span.end].strip() for span in spans)


@given(LINES, st.booleans())
def test_the_same_text_again_changes_nothing(lines: list[str], whole: bool) -> None:
    text = "\n\n".join(lines)
    merge = v.merge_versions(text, f" {text}\n", whole=whole)
    assert (merge.text, merge.changed, merge.unchanged_share) == (text, False, 1.0)
    assert merge.sent == (Span(0, len(text)),)


@given(LINES, LINES)
def test_the_whole_source_sent_again_is_the_result_byte_for_byte(stored: list[str], sent: list[str]) -> None:
    old, new = "\n\n".join(stored), "\n\n".join(sent)
    merge = v.merge_versions(old, new, whole=True)
    assert merge.text == new
    assert merge.changed == (old != new)
    assert v.merge_versions(merge.text, new, whole=True).changed is False


@given(LINES, LINES)
def test_a_part_sent_again_loses_only_what_it_replaces(stored: list[str], sent: list[str]) -> None:
    old, new = "\n\n".join(stored), "\n\n".join(sent)
    merge = v.merge_versions(old, new, whole=False)
    for line in set(sent):
        assert line in merge.text
    for line in set(stored):
        assert line in merge.text or line in shown(old, merge.replaced)


@given(LINES, LINES, st.booleans())
def test_spans_are_in_order_and_within_their_text(stored: list[str], sent: list[str], whole: bool) -> None:
    old, new = "\n\n".join(stored), "\n\n".join(sent)
    merge = v.merge_versions(old, new, whole=whole)
    for spans, text in ((merge.edited, merge.text), (merge.sent, merge.text), (merge.replaced, old)):
        ends = [place for span in spans for place in (span.start, span.end)]
        assert ends == sorted(ends)
        assert all(0 <= span.start < span.end <= len(text) for span in spans)
    sent_places = {place for span in merge.sent for place in range(span.start, span.end)}
    assert all(place in sent_places for span in merge.edited for place in range(span.start, span.end))
    assert 0 <= merge.unchanged_share <= 1


def test_an_edited_turn_replaces_the_stored_one_in_place() -> None:
    edited = TURNS[30].replace("point 30", "the budget")
    sent = "".join([*TURNS[:30], edited, *TURNS[31:]])
    merge = v.merge_versions(TRANSCRIPT, sent, whole=False)
    assert merge.text == sent
    assert shown(merge.text, merge.edited) == edited.strip()
    assert shown(TRANSCRIPT, merge.replaced) == TURNS[30].strip()
    assert merge.unchanged_share == 59 / 60


def test_turns_that_were_not_sent_again_stay() -> None:
    edited = TURNS[10].replace("point 10", "the budget")
    sent = "".join([edited, *TURNS[11:50], "Ana: and one more thing at the end.\n"])
    merge = v.merge_versions(TRANSCRIPT, sent, whole=False)
    assert merge.text == "".join([*TURNS[:10], sent, *TURNS[51:]])
    assert shown(merge.text, merge.sent) == sent.strip()


def test_a_growing_transcript_gains_its_new_turns() -> None:
    more = "Tom: see you next week.\nAna: bye.\n"
    merge = v.merge_versions(TRANSCRIPT, TRANSCRIPT + more, whole=False)
    assert merge.text == TRANSCRIPT + more
    assert shown(merge.text, merge.edited) == more.strip()
    assert not merge.replaced


def test_only_what_was_sent_again_is_fresh_unless_the_new_label_won() -> None:
    sent = "".join([*TURNS[:40], "Ana: something new.\n"])
    merge = v.merge_versions(TRANSCRIPT, sent, whole=False)
    assert shown(merge.text, merge.fresh(label_won=False)) == sent.strip()
    assert merge.fresh(label_won=True) == (Span(0, len(merge.text)),)


def test_a_part_with_nothing_new_stores_nothing() -> None:
    merge = v.merge_versions(TRANSCRIPT, "".join(TURNS[5:45]), whole=False)
    assert merge.changed is False
    assert merge.text is TRANSCRIPT
    assert shown(TRANSCRIPT, merge.sent) == "".join(TURNS[5:45]).strip()


def test_half_of_the_segments_or_the_uri_make_a_version() -> None:
    half = "".join([*TURNS[:30], *(f"Ana: other words {n} for something quite different.\n" for n in range(30))])
    less = "".join([*TURNS[:29], *(f"Ana: other words {n} for something quite different.\n" for n in range(31))])
    assert v.is_new_version(TRANSCRIPT, half, same_uri=False)
    assert not v.is_new_version(TRANSCRIPT, less, same_uri=False)
    assert v.is_new_version(TRANSCRIPT, less, same_uri=True)


def test_a_short_text_is_never_a_version() -> None:
    assert not v.is_new_version("short", "short, edited", same_uri=True)
    assert not v.is_new_version(TRANSCRIPT, TRANSCRIPT[:1999], same_uri=True)


def test_a_small_text_quoted_in_a_big_one_is_not_its_version() -> None:
    assert not v.is_new_version(
        TRANSCRIPT, TRANSCRIPT + "".join(f"Eve: new {n}.\n" for n in range(200)), same_uri=False
    )


def test_the_label_of_higher_rank_stays() -> None:
    decision, preference = Label("decision", position=True, default_importance=0.8), Label("preference", position=True)
    note, insight, other = Label("note"), Label("insight", default_importance=0.9), Label("other")
    assert v.winning_label(preference, insight) is preference
    assert v.winning_label(insight, preference) is preference
    assert v.winning_label(decision, preference) is decision
    assert v.winning_label(note, insight) is insight
    assert v.winning_label(note, other) is other


def test_huge_texts_are_compared_in_seconds() -> None:
    started = time.process_time()
    turns = [f"Ana: yes {n % 5000}.\n" for n in range(40_000)]
    v.merge_versions("".join(turns), "".join(reversed(turns)), whole=False)
    unique = [f"Ana: yes {n}.\n" for n in range(40_000)]
    v.merge_versions("".join(unique), "".join(reversed(unique)), whole=True)
    assert time.process_time() - started < 4
