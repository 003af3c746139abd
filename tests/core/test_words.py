"""Pieces: what an English analyzer would not find."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_mem.core.participants import named
from graph_mem.core.query_kind import query_kind
from graph_mem.core.words import folded, identifiers, pieces


@pytest.mark.parametrize(
    ("text", "piece"),
    [
        ("order RX-7741-Q shipped", "rx_7741_q"),
        (r"see C:\repo\a.py", "c_repo_a_py"),
        ("getUserName()", "user"),
        ("snake_case", "snake"),
        ("v2.13.0", "v2_13_0"),
        ("mail ana@acme.example", "ana_acme_example"),
        ("Straße", "strasse"),
        ("Café", "cafe"),
        ("INV-2024-0042", "inv_2024_0042"),
    ],
)
def test_identifiers_and_accents_have_a_piece(text: str, piece: str) -> None:
    assert piece in pieces(text)


@pytest.mark.parametrize(
    ("text", "inner"),
    [("データベースの設計", "設計"), ("데이터베이스를", "베이스"), ("ประเทศไทย", "ไทย"), ("中文数据库设计", "数据库")],
)
def test_inner_words_of_unspaced_scripts_share_all_their_pieces(text: str, inner: str) -> None:
    assert set(pieces(inner)) <= set(pieces(text))
    assert pieces(inner)


def test_plain_words_have_none() -> None:
    assert pieces("The billing rate was raised to 185 euros, from March on (see below); it's self-evident.") == []


@given(st.text())
def test_any_text_has_pieces_that_no_analyzer_takes_apart(text: str) -> None:
    found = pieces(text)
    assert len(found) == len(set(found))
    assert all(piece and not any(character.isspace() for character in piece) for piece in found)
    assert all(len(piece.encode()) < 32_000 for piece in found)


@given(st.text())
def test_folding_is_idempotent(text: str) -> None:
    assert folded(folded(text)) == folded(text)


def test_folding_twice_changes_no_character() -> None:
    characters = map(chr, (*range(0xD800), *range(0xE000, sys.maxunicode + 1)))
    assert [one for one in characters if folded(folded(one)) != folded(one)] == []


@pytest.mark.parametrize(
    ("query", "names", "expected"),
    [
        ("What did Caroline paint?", ["Caroline", "Melanie"], "caroline"),
        ("What did Ana Silva decide?", ["Ana Silva", "Ben"], "ana silva"),
        ("What did Ana decide?", ["Ana Silva", "Ben"], "ana silva"),
        ("What did Caroline tell Melanie?", ["Caroline", "Melanie"], None),
        ("What was decided?", ["Caroline"], None),
        ("Analysis of rates", ["Ana"], None),
        ("who is al", ["Al"], "al"),
        ("anything", ["", "…"], None),
    ],
)
def test_a_query_names_one_participant_or_nobody(query: str, names: list[str], expected: str | None) -> None:
    assert named(query, names) == expected


def test_the_same_question_is_of_the_same_kind() -> None:
    assert query_kind("Who leads Acme?") == query_kind("who leads acme")
    assert query_kind("Who leads Acme?") != query_kind("When was Acme founded?")


@given(st.text())
def test_every_text_is_of_some_kind(text: str) -> None:
    form, _, topic = query_kind(text).partition(":")
    assert form
    assert 0 <= int(topic) < 64


@pytest.mark.parametrize(
    ("query", "held", "others"),
    [
        ("which pump is RX-7741-Q?", "the rx7741q pump", "the RX-7741-R pump, the RX-7741-QA pump"),
        ("order 48-1124", "order (48-1124).", "order 48-1123, order 148-1124"),
        ("invoice 2025-0098", "Invoice 2025-0098", "invoice 2025-0089"),
        ("error 0x80070005", "E_CONN 0x80070005", "0x80070006"),
        ("INV20250089 paid", "inv-2025-0089; INV20250089", "INV20250098"),
        ("COVID-19", "Covid 19", "COVID-20"),
    ],
)
def test_an_identifier_is_recognized_however_it_is_joined(query: str, held: str, others: str) -> None:
    (identifier,) = identifiers(query)
    assert identifier.search(held)
    assert not identifier.search(others)


@pytest.mark.parametrize(
    "query",
    [
        "what happened on 2026-03-01 at 10:30, or 2026-03-01T10:30:00Z",
        "between 10-15 and 1,000.50 euros, 3.5 % or 1/2",
        "the 1990s, mid-2023, the 2nd of 18-35-year-olds, 500mg, 10k, Q3",
        "billing rate of Northwind",
        "",
    ],
)
def test_dates_numbers_and_words_are_no_identifiers(query: str) -> None:
    assert identifiers(query) == []


@given(st.text())
def test_identifiers_of_any_text_find_themselves(text: str) -> None:
    assert all(identifier.search(text) for identifier in identifiers(text))
