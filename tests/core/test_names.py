"""Names in running text and in queries."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_mem.core.names import MAX_NAMES, names_in, stands_alone, units
from graph_mem.core.text import name_key


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("What did Ana Silva say?", "Ana Silva"),
        ("Is Ana's report done?", "Ana"),
        ("James' dog", "James"),
        ("the RX-7741-Q shipped", "RX-7741-Q"),
        ("who uses C++ here", "C++"),
        ("AT&T, Acme GmbH and others", "AT&T"),
        ("AT&T, Acme GmbH and others", "Acme GmbH"),
        ("the Bank of America deal", "Bank of America"),
        ("did Will come", "Will"),
        ("“Müller & Söhne”?", "Müller & Söhne"),
        ("東京のカフェはどこ", "東京"),
        ("ＡＣＭＥ news", "Acme"),
        ("mail ana@acme.example now", "ana@acme.example"),
    ],
)
def test_a_name_in_a_query_is_among_its_names(query: str, name: str) -> None:
    assert name_key(name) in names_in(query)


@pytest.mark.parametrize("query", ["", "?", "what is the", "will it be", "…!?"])
def test_stop_words_and_signs_name_nothing(query: str) -> None:
    assert names_in(query) == ()


def test_names_do_not_cross_punctuation() -> None:
    assert "ana bob" not in names_in("Ana, Bob")
    assert "ana bob" in names_in("Ana Bob")


@given(st.text(max_size=200))
def test_any_query_gives_bounded_normal_names(query: str) -> None:
    names = names_in(query)
    assert len(names) <= MAX_NAMES
    assert len(set(names)) == len(names)
    assert all(name and name.strip() == name for name in names)


def test_a_huge_query_stays_bounded() -> None:
    assert len(names_in("Word " * 20_000)) <= MAX_NAMES
    assert len(names_in("東京" * 50_000)) <= MAX_NAMES


@given(st.text(max_size=100))
def test_units_are_the_text_without_space(text: str) -> None:
    found = units(text)
    assert "".join(text[unit.start : unit.end] for unit in found) == "".join(text.split())


@given(st.text(alphabet="aé üÀо東ｱ-'.&", max_size=30))
def test_both_unicode_forms_have_the_same_units(text: str) -> None:
    composed, decomposed = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    assert [unit.key for unit in units(composed)] == [unit.key for unit in units(decomposed)]


@pytest.mark.parametrize(
    ("text", "alone"),
    [
        ("Acme", True),
        ("Acme's", True),
        ("(Acme)", True),
        ("Acme-style", True),
        ("ex-Acme", True),
        ("at Acme.", True),
        ("我爱Acme吧", True),
        ("Acmes", False),
        ("PAcme", False),
        ("Ana-Acme", False),
        ("Acme-Werke", False),
        ("x@Acme", False),
        ("Acme.com", False),
        ("Acme_1", False),
        ("src/Acme", False),
    ],
)
def test_a_name_stands_alone_or_is_part_of_another_word(text: str, alone: bool) -> None:
    start = text.index("Acme")
    assert stands_alone(text, start, start + 4) is alone
