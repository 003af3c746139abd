import sys
import time
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_mem.core import text as t
from graph_mem.errors import InvalidInput

regex = pytest.importorskip("regex", reason="comes with transformers; the reference for grapheme clusters")

TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=80)
LETTERS = st.text(alphabet=st.characters(categories=["Ll", "Lu", "Lo", "Nd"]), min_size=1, max_size=30)
SPACES = st.text(alphabet=" \n\t\u00a0\u2003\u3000", min_size=1, max_size=4)
GRAPHEMES = st.text(
    alphabet="ab e\u0301\u0308\u200d\ufe0f\U0001f468\U0001f469\U0001f3fd\U0001f1e9\U0001f1ea\u0915\u094d\u0937\u0e33"
    "\u1100\u1161\u11a8\r\n가각\u0600",
    max_size=40,
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "is empty"),
        (" \n\t\u3000", "none of them visible"),
        ("\u200b\ufeff\u2800", "none of them visible"),
        ("a\0b", "NUL"),
        ("a\ud800b", "U+D800"),
        ("é" * (t.MAX_TEXT_BYTES // 2 + 1), "2097154 bytes"),
    ],
)
def test_text_that_cannot_be_stored_is_refused_by_what_was_found(text: str, found: str) -> None:
    with pytest.raises(InvalidInput, match=found.replace("+", r"\+")) as refused:
        t.check_text(text, path=("input", "text"))
    assert refused.value.path == ("input", "text")


@given(TEXT.filter(lambda text: "\0" not in text and any(c.isalnum() for c in text)))
def test_accepted_text_is_byte_identical(text: str) -> None:
    assert t.check_text(text) is text


def test_a_text_of_exactly_the_limit_is_accepted() -> None:
    assert t.check_text("x" * t.MAX_TEXT_BYTES)


def test_a_name_is_one_line_and_short() -> None:
    assert t.check_name("  Zoë  ", path=("name",)) == "Zoë"
    for name in ("a\nb", "a\x07b", "x" * 1001, "名" * 400, "  "):
        with pytest.raises(InvalidInput):
            t.check_name(name, path=("name",))


@given(TEXT)
def test_the_forms_are_idempotent(text: str) -> None:
    for form in (t.normal_form, t.rejected_form, t.name_key):
        assert form(form(text)) == form(text)


@pytest.mark.parametrize("form", [t.normal_form, t.rejected_form, t.name_key])
def test_the_forms_are_idempotent_on_every_character(form: Callable[[str], str]) -> None:
    characters = map(chr, (*range(0xD800), *range(0xE000, sys.maxunicode + 1)))
    assert [one for one in characters if form(form(one)) != form(one)] == []


@given(TEXT, st.sampled_from(["NFC", "NFD"]))
def test_unicode_form_does_not_make_another_text(text: str, form: str) -> None:
    assert t.text_hash(unicodedata.normalize(form, text)) == t.text_hash(text)


@given(st.lists(LETTERS, min_size=1, max_size=6), st.data())
def test_spacing_does_not_make_another_text(words: list[str], data: st.DataObject) -> None:
    spaced = "".join(word + data.draw(SPACES) for word in words)
    assert t.text_hash(spaced) == t.text_hash(" ".join(words))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("It’s “fine” – really…", 'It\'s "fine" - really...'),
        ("Ｆｕｌｌ　ｗｉｄｔｈ", "Full width"),
        ("ﬁnal", "final"),
        ("a\u00adb\ufeff", "ab"),
    ],
)
def test_the_form_of_punctuation_and_letters_does_not_make_another_text(one: str, other: str) -> None:
    assert t.text_hash(one) == t.text_hash(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ship it.", "Ship it?"),
        ("Ship it", "Ship it."),
        ("Polish", "polish"),
        ("10² m", "102 m"),
        ("1½", "11⁄2"),
        ("now here", "nowhere"),
        ("Müller", "Muller"),
        ("Zürich", "Zörich"),
        ("Ana’s salary is 100k EUR", "Ana’s salary is 110k EUR"),
    ],
)
def test_close_but_unequal_texts_stay_two(one: str, other: str) -> None:
    assert t.text_hash(one) != t.text_hash(other)


def test_a_statement_written_in_another_case_is_the_same_fact() -> None:
    assert t.statement_hash("  ana earns 110k  EUR. ") == t.statement_hash("Ana earns 110k EUR.")
    assert t.statement_hash("Ana earns 110k EUR.") != t.statement_hash("Ana earns 100k EUR.")
    assert t.statement_hash("Straße") == t.statement_hash("STRASSE")


@pytest.mark.parametrize(
    "disguise",
    [
        "ana  EARNS 110K eur",
        "Аnа еаrns 110k ЕUR.",  # Cyrillic
        "Αna eαrns 110k EUR",  # Greek
        "A\u200bna e\u00adarns 110k EUR\u2060!",
        "Ａｎａ ｅａｒｎｓ １１０ｋ ＥＵＲ。",
        "𝐀𝐧𝐚 𝘦𝘢𝘳𝘯𝘴 ١١٠k EUR",
        "A na earns 110 k EUR.",
    ],
)
def test_a_rejected_value_is_recognised_in_disguise(disguise: str) -> None:
    assert t.rejection_hash(disguise) == t.rejection_hash("Ana earns 110k EUR.")


@pytest.mark.parametrize(
    "other", ["Ana earns 100k EUR.", "Ana earns 110k USD.", "Anna earns 110k EUR.", "Ana eärns 110k EUR."]
)
def test_another_value_is_not_taken_for_the_rejected_one(other: str) -> None:
    assert t.rejection_hash(other) != t.rejection_hash("Ana earns 110k EUR.")


def test_words_that_differ_in_ascii_letters_are_not_look_alikes() -> None:
    assert t.rejection_hash("uses a modem") != t.rejection_hash("uses a modern")
    assert t.rejection_hash("Level 1") != t.rejection_hash("Level l")


@given(LETTERS)
def test_the_same_statement_is_always_the_same_rejection(text: str) -> None:
    assert t.rejection_hash(f" {text} . ") == t.rejection_hash(text)


@pytest.mark.parametrize(
    ("one", "other"), [("Zoë", "Zoe"), ("用户1", "用户2"), ("Łódź", "Lodz"), ("ä", "ö"), ("ぱ", "は")]
)
def test_names_that_differ_in_letters_of_any_script_stay_two(one: str, other: str) -> None:
    assert t.name_key(one) != t.name_key(other)


def test_a_name_in_another_case_or_spacing_is_the_same_slot() -> None:
    assert t.name_key("  Northwind \u00a0 TRADERS ") == t.name_key("northwind traders")
    assert t.name_key("Ana’s") == t.name_key("ana's")


@given(GRAPHEMES)
def test_no_cut_tears_a_character(text: str) -> None:
    borders = {match.start() for match in regex.finditer(r"\X", text)} | {len(text)}
    assert all(place in borders for place in range(len(text) + 1) if not t.splits_character(text, place))


@given(GRAPHEMES, st.integers(0, 40))
def test_a_cut_is_at_or_before_the_place_asked_for(text: str, index: int) -> None:
    assert 0 <= t.cut_before(text, min(index, len(text))) <= index


@given(TEXT.map(lambda text: text * 6), TEXT, st.integers(20, 300))
def test_a_snippet_is_a_part_of_the_text_within_its_length(text: str, query: str, length: int) -> None:
    snippet = t.snippet(text, query, length=length)
    assert len(snippet) <= length
    assert (
        snippet.removeprefix("…").removesuffix("…").strip() in " ".join(f" {text} ".split())
        or not snippet.isprintable()
    )


def test_a_snippet_shows_the_words_of_the_query() -> None:
    text = "Nothing here. " * 60 + "The billing rate of Northwind is 112 euros an hour. " + "More of nothing. " * 60
    assert "billing rate of Northwind is 112 euros" in t.snippet(text, "northwind BILLING rate?", length=120)


def test_a_snippet_prefers_the_place_with_most_different_words() -> None:
    text = "rate rate rate rate. " + "x " * 200 + "the billing rate. " + "y " * 200
    assert "billing rate" in t.snippet(text, "billing rate", length=60)


def test_a_snippet_finds_words_inside_text_without_spaces() -> None:
    text = "今日は天気がいい。" * 40 + "東京都の人口は増えている。" + "明日は雨が降る。" * 40
    assert "人口" in t.snippet(text, "東京の人口", length=60)


def test_a_snippet_without_any_word_of_the_query_is_the_beginning() -> None:
    assert t.snippet("alpha beta " * 50, "omega", length=40) == "alpha beta alpha beta alpha beta alpha…"


def test_a_snippet_cuts_no_word() -> None:
    shown = t.snippet("alpha beta gamma delta " * 40, "gamma", length=50)
    assert set(shown.strip("…").split()) <= {"alpha", "beta", "gamma", "delta"}


def test_a_huge_text_is_handled_quickly() -> None:
    text, started = "some words and numbers 12345 and more. " * 50_000, time.monotonic()
    t.text_hash(text)
    t.snippet(text, "words and numbers " * 500)
    assert time.monotonic() - started < 3


@pytest.mark.parametrize(
    ("number", "told"),
    [(0, "0 memories"), (1, "1 memory"), (1.4, "1 memory"), (2, "2 memories"), (12_000, "12,000 memories")],
)
def test_one_is_told_as_one(number: float, told: str) -> None:
    assert t.how_many(number, "memory", "memories") == told
    assert (t.how_many(1, "time"), t.how_many(0, "time")) == ("1 time", "0 times")
