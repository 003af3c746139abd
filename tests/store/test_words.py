"""Whatever is asked becomes a query that Lucene can read."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graph_mem.store.words import lucene, needle, wording

OPERATORS = ["+", "-", "&&", "||", "!", "(", ")", "{", "}", "[", "]", "^", '"', "~", "*", "?", ":", "\\", "/"]


@pytest.mark.parametrize("text", ["", " ", "the", "to be or not to be", "?!…", "\x00"])
def test_text_without_a_word_that_could_be_indexed_asks_nothing(text: str) -> None:
    assert wording(text) is None


@given(st.text())
@example("0)/0")
@example("a\\/b")
def test_every_syntax_character_is_escaped(text: str) -> None:
    asked = wording(text)
    if asked is None:
        return
    bare = re.sub(r"\\.", "_", asked.clause, flags=re.DOTALL)
    assert re.fullmatch(r"\+\((?:(?:content|title|pieces):\([^()]*\) ?)+\)", bare)
    for word in re.sub(r"\A\+|(?:content|title|pieces):|[()]|\^0\.1(?=[ )])", "", bare).split():
        assert not set(word) & set('+-!(){}[]^"~*?:/&|<>=\\')
        assert word not in ("AND", "OR", "NOT")


def test_a_word_that_asks_weighs_less_than_a_word_that_tells() -> None:
    asked = wording("When did Caroline leave?")
    assert asked is not None
    assert "content:(When^0.1 did^0.1 Caroline leave)" in asked.clause
    assert asked.words == 2


@pytest.mark.parametrize("text", ["who", "What did", "the who?"])
def test_words_that_ask_are_searched_in_full_when_there_is_nothing_else(text: str) -> None:
    asked = wording(text)
    assert asked is not None
    assert "^" not in asked.clause


def test_four_hundred_words_are_all_asked_for() -> None:
    text = " ".join(f"word{i}" for i in range(400)) + " zebrafink"
    asked = wording(text)
    assert asked is not None
    assert "zebrafink" in asked.clause
    assert asked.cut is None
    assert asked.clause.count(" ") < 1_000


def test_a_text_of_more_words_than_the_index_takes_is_cut_and_says_so() -> None:
    asked = wording(" ".join(f"w{'x' * (i % 9)}{i}" for i in range(5_000)))
    assert asked is not None
    assert asked.cut is not None
    assert "look rarest were searched" in asked.cut


def test_filters_add_nothing_to_the_score() -> None:
    asked = wording("billing rate")
    assert asked is not None
    query = lucene(asked, [["ka0", "kb0"], [], ["kc0"]])
    assert query == "+keys:(ka0 kb0)^0 +keys:(kc0)^0 +(content:(billing rate) title:(billing rate))"


def test_needle_is_the_longest_word() -> None:
    assert needle("what does Northwind pay") == "northwind"
    assert needle("") == ""
