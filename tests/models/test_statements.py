"""Claims by rules: what a text plainly states of a name, with the sentence as evidence."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_mem.core.vocabulary import DEFAULT, Term
from graph_mem.models.claims import StatedClaim
from graph_mem.models.extractor import Extractor
from graph_mem.models.statements import RuleClaims

VOCABULARY = replace(
    DEFAULT, terms=(Term("Acme", "company", ("Acme Corporation",)), Term("Atlas", "product"), Term("Ana", "person"))
)
RULES = RuleClaims(Extractor())


def read(text: str) -> tuple[StatedClaim, ...]:
    return RULES.read(text, vocabulary=VOCABULARY)


@pytest.mark.parametrize(
    ("sentence", "subject", "relation"),
    [
        ("Acme's annual budget is 40,000 EUR.", "Acme", "annual budget"),
        ("The CEO of Acme is Jane Doe.", "Acme", "CEO"),
        ("The Acme Corporation is based in Berlin.", "Acme", "located in"),
        ("Ana works at Acme.", "Ana", "works at"),
        ("Ana lives in Rome.", "Ana", "lives in"),
        ("Ana has moved to Lisbon.", "Ana", "moved to"),
        ("Jane Doe is the head of sales at Acme.", "Jane Doe", "role"),
        ("Jane Doe became director of sales.", "Jane Doe", "role"),
        ("Atlas is a graph database.", "Atlas", "is a"),
        ("Acme was a bank until 1990.", "Acme", "was a"),
        ("Atlas costs 3.50 EUR per month.", "Atlas", "costs"),
        ("Atlas uses Neo4j.", "Atlas", "uses"),
        ("Atlas depends on Java 21.", "Atlas", "depends on"),
        ("Acme acquired Blue Fox Ltd. in 2020.", "Acme", "acquired"),
        ("Dr. Weber is the head of the lab at St. Mary's.", "Dr. Weber", "role"),
    ],
)
def test_a_plain_sentence_is_a_claim(sentence: str, subject: str, relation: str) -> None:
    text = f"Some words first. {sentence} And some after it."
    (claim,) = read(text)
    assert (claim.subject, claim.relation, claim.statement) == (subject, relation, sentence)
    assert text[claim.evidence.start : claim.evidence.end] == sentence
    assert 0 < claim.confidence <= 1


@pytest.mark.parametrize(
    "sentence",
    [
        "Does Ana live in Rome?",
        "Ana lives in Rome?",
        "Ana might live in Rome.",
        "Ana probably lives in Rome.",
        "Ana does not live in Rome.",
        "Ana no longer lives in Rome.",
        "If Ana lives in Rome, we call her.",
        "Ana plans a move to Rome.",
        "Acme will launch it in May.",
        "I live in Rome.",
        "My Atlas costs 4 EUR.",
        "We use Atlas.",
        "It costs 4 EUR per month.",
        "Customers use Kafka every day.",
        "The price is high.",
        "Ana uses it daily.",
        "Note: Ana.",
        "",
    ],
)
def test_what_is_not_plainly_stated_is_no_claim(sentence: str) -> None:
    assert read(sentence) == ()
    assert [claim.subject for claim in read(f"{sentence} Ana owns a boat.")] == ["Ana"], "the sibling is still found"


@pytest.mark.parametrize(
    ("said", "statement", "relation"),
    [
        ("I live in Rome.", "Ben lives in Rome.", "lives in"),
        ("I'm the CTO of Acme.", "Ben is the CTO of Acme.", "role"),
        ("I now work for Acme.", "Ben now works for Acme.", "works at"),
        ("I have two dogs.", "Ben has two dogs.", "has"),
        ("Ana lives in Rome.", "Ana lives in Rome.", "lives in"),
    ],
)
def test_what_a_speaker_says_of_themselves_is_filed_under_their_name(said: str, statement: str, relation: str) -> None:
    text = f"Ana: Hello there!\nBen: {said} My dog is nice."
    (claim,) = read(text)
    assert (claim.statement, claim.relation) == (statement, relation)
    assert text[claim.evidence.start : claim.evidence.end] == said


def test_a_heading_speaks_for_nobody() -> None:
    assert read("Note: I live in Rome.") == ()


def test_a_claim_is_told_once() -> None:
    assert len(read("Ana lives in Rome. Yes. Ana lives in Rome.")) == 1


def test_a_plain_common_noun_is_no_subject_but_a_full_name_is() -> None:
    assert read("Servers run on diesel.") == ()
    assert [claim.subject for claim in read("Blue Fox runs on diesel.")] == ["Blue Fox"]


async def test_long_and_short_texts_read_the_same() -> None:
    short = await RULES.claims("Ana lives in Rome. ", vocabulary=VOCABULARY)
    long = await RULES.claims("Ana lives in Rome. " + "Nothing here. " * 1_000, vocabulary=VOCABULARY)
    assert short == long


@given(st.text(max_size=300))
def test_any_text_can_be_read(text: str) -> None:
    for claim in read(text):
        assert text[claim.evidence.start : claim.evidence.end].strip()
