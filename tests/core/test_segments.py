import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_mem.core import segments as s
from graph_mem.core.text import splits_character

WORDS = st.sampled_from(
    [
        "alpha",
        "beta.",
        "gamma?",
        "3.14",
        "Ana:",
        "\n",
        "\n\n",
        "Tom: hi",
        "東京都。",
        "नमस्ते।",
        "مرحبا؟",
        "👨‍👩‍👧",
        "x" * 90,
        "é" * 40,
    ]
)
TEXT = st.lists(WORDS, max_size=60).map(" ".join)
ANY = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=400)


@given(TEXT | ANY)
def test_segments_together_are_the_text(text: str) -> None:
    assert "".join(text[part.start : part.end] for part in s.segments(text)) == text


@given(TEXT | ANY, st.integers(64, 200), st.integers(0, 200))
def test_chunks_cover_every_visible_character_once_in_order(text: str, target: int, more: int) -> None:
    chunks = s.chunks(text, whole_chars=target + more, target_chars=target)
    covered = [place for chunk in chunks for place in range(chunk.start, chunk.end)]
    assert covered == sorted(set(covered))
    assert {place for place, letter in enumerate(text) if not letter.isspace()} <= set(covered)
    assert all(text[c.start : c.end].strip() == text[c.start : c.end] != "" for c in chunks)


@given(TEXT | ANY, st.integers(64, 200), st.integers(0, 200))
def test_no_chunk_is_longer_than_allowed_or_tears_a_character(text: str, target: int, more: int) -> None:
    for chunk in s.chunks(text, whole_chars=target + more, target_chars=target):
        assert chunk.end - chunk.start <= target + more
        assert text[: chunk.start][-1:].isspace() or not splits_character(text, chunk.start)


def test_a_text_up_to_the_limit_is_one_chunk() -> None:
    assert s.chunks("  word " * 257) == [s.Span(2, 1798)]
    assert len(s.chunks("word " * 400)) == 2
    assert s.chunks(" \n ") == []


def test_chunks_end_at_paragraphs_then_sentences() -> None:
    text = "\n\n".join(f"Paragraph {n}. " + "It says something. " * 40 for n in range(6))
    parts = [text[c.start : c.end] for c in s.chunks(text)]
    assert all(part.startswith("Paragraph") for part in parts)
    long = "One sentence of moderate length stands here. " * 200
    assert all(long[c.start : c.end].endswith("here.") for c in s.chunks(long))


@pytest.mark.parametrize("end", ["。", "！", "？", "।", "؟", "။", "។", "።"])
def test_sentences_of_any_script_are_not_cut(end: str) -> None:
    text = ("語" * 30 + end) * 100
    assert all(text[c.start : c.end].endswith(end) for c in s.chunks(text))


def test_speaker_turns_are_not_cut() -> None:
    text = "\n".join(
        f"{name}: I have something to say about number {n}." for n in range(80) for name in ("Ana", "Tom Vu")
    )
    parts = [text[c.start : c.end] for c in s.chunks(text)]
    assert len(parts) > 3
    assert all(part.startswith(("Ana:", "Tom Vu:")) and part.endswith(".") for part in parts)


def test_a_heading_stays_with_its_paragraph() -> None:
    text = "Introduction\n\n" + "Words of the first part. " * 60 + "\n\nMethods\n\n" + "Words of the second. " * 60
    parts = [text[c.start : c.end] for c in s.chunks(text)]
    assert [part.split("\n")[0][:12] for part in parts] == ["Introduction", "Methods"]


def test_dense_scripts_get_shorter_chunks() -> None:
    assert max(c.end - c.start for c in s.chunks("語" * 5_000)) <= 450
    assert max(c.end - c.start for c in s.chunks("слово " * 1_000)) <= 500


@pytest.mark.parametrize(
    ("turn", "name"),
    [
        ("Ana: good morning", "Ana"),
        ("[00:01:23] Tom Vu: hi", "Tom Vu"),
        ("00:01:23.500 - Dr. O'Neil-Smith: hi", "Dr. O'Neil-Smith"),
        ("**Ana**: hi", "Ana"),
        ("**Ana:** hi", "Ana"),
        ("> Ana (10:12): hi", "Ana"),
        ("山田：こんにちは", "山田"),
        ("Zoë:\nhello", "Zoë"),
        ("https://example.org: no", None),
        ("10:30 we met", None),
        ("What I want to say is this: no", None),
        ("no colon here", None),
        ("C:\\repo", None),
        ("x" * 60 + ": too long", None),
    ],
)
def test_a_turn_tells_its_speaker(turn: str, name: str | None) -> None:
    assert s.speaker(turn) == name
    assert s.segments(turn)[0].speaker == name


def test_segments_are_turns_else_paragraphs_else_lines() -> None:
    assert [p.speaker for p in s.segments("Ana: a\nstill Ana\nTom: b\n")] == ["Ana", "Tom"]
    assert len(s.segments("one\ntwo\n\nthree\r\n\r\nfour")) == 3
    assert len(s.segments("one\ntwo\nthree")) == 3
    assert len(s.segments("\n\n  one\n\ntwo")) == 2
    assert s.segments("") == []


def test_an_edited_copy_shares_part_of_the_sketch() -> None:
    paragraphs = [f"Paragraph number {n} says {n * 7}." for n in range(100)]
    edited = [*paragraphs[:50], *(f"Edited {n}" for n in range(50))]
    other = [f"Unrelated {n}" for n in range(100)]
    stored = set(s.sketch("\n\n".join(paragraphs)))
    assert len(stored) == 32
    assert stored & set(s.sketch("\n\n".join(edited)))
    assert not stored & set(s.sketch("\n\n".join(other)))


HALF_A_MEGABYTE = {
    "words": "word " * 100_000,
    "one word": "x" * 100_000,
    "newlines": "\n" * 500_000 + "x",
    "turns": "Ana: hi\n" * 60_000,
    "cjk": "語" * 170_000,
    "spaces": " " * 500_000 + "x",
    "accents": "a\u0301" * 170_000,
    "marks": "\u0301" * 100_000,
    "flags": "\U0001f1e9\U0001f1ea" * 60_000,
    "sentences": "a. " * 170_000,
    "brackets": "[" * 500_000,
    "names": "Ana " * 120_000,
    "quotes": "\n> " * 160_000,
}


@pytest.mark.parametrize("text", HALF_A_MEGABYTE.values(), ids=HALF_A_MEGABYTE)
def test_half_a_megabyte_of_anything_is_divided_quickly(text: str) -> None:
    started = time.process_time()
    chunks = s.chunks(text)
    assert time.process_time() - started < 2
    visible = sum(not letter.isspace() for letter in text)
    assert sum(sum(not x.isspace() for x in text[c.start : c.end]) for c in chunks) == visible


def test_a_long_word_is_cut_between_whole_characters() -> None:
    text = unicodedata.normalize("NFD", "ü") * 50_000
    assert all(text[c.start] == "u" for c in s.chunks(text))


def test_sizes_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="expected 64 <= target <= whole"):
        s.chunks("x", whole_chars=100, target_chars=200)
