"""Entities by vocabulary, speaker labels and cues: few, and right."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from graph_mem.core.model import EntityRole
from graph_mem.core.vocabulary import DEFAULT, Term, Vocabulary
from graph_mem.models.extractor import Extraction, Extractor, Found

TERMS = (
    Term("Melanie", "person", ("Mel",)),
    Term("Acme", "company", ("Acme Corporation",)),
    Term("Acme Cloud", "product"),
    Term("IT", "project", ("Information Technology",)),
    Term("Will", "person"),
    Term("Café Größe", "place"),
    Term("東京", "place", ("Tōkyō",)),
    Term("กรุงเทพ", "place"),
    Term("दिल्ली", "place"),
    Term("C++", "product"),
    Term("AT&T", "company"),
    Term("Billing", "project"),
)
VOCABULARY = replace(DEFAULT, terms=TERMS)
EXTRACTOR = Extractor()


def read(text: str, *, title: str | None = None, vocabulary: Vocabulary = VOCABULARY) -> dict[str, Found]:
    return {found.name: found for found in EXTRACTOR.read(text, title=title, vocabulary=vocabulary).entities}


def labels(text: str) -> dict[str, str]:
    return {name: found.label for name, found in read(text).items()}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("we met at acme yesterday", "Acme"),
        ("we met at ACME’s office", "Acme"),
        ("the acme  corporation wrote", "Acme"),
        ("an offer for Acme Cloud", "Acme Cloud"),
        ("ask IT about it", "IT"),
        ("ask Will about it", "Will"),
        ("meet at café größe", "Café Größe"),
        ("meet at Cafe\u0301 Gro\u0308ße", "Café Größe"),
        ("我在東京见了他", "東京"),
        ("ผมอยู่ที่กรุงเทพครับ", "กรุงเทพ"),
        ("मैं दिल्ली में हूँ", "दिल्ली"),
        ("written in C++.", "C++"),
        ("billed by at&t", "AT&T"),
    ],
)
def test_a_term_is_found_however_it_is_written(text: str, name: str) -> None:
    assert list(read(text)) == [name]


@pytest.mark.parametrize(
    "text",
    [
        "it is late and will be later",
        "Acmes are small",
        "see acme.example for more",
        "the file src/acme/main",
        "melanin is no name",
        "दिल्लीवाला",
    ],
)
def test_a_term_is_not_found_inside_other_words(text: str) -> None:
    assert read(text) == {}


def test_the_longest_term_wins_and_places_are_told() -> None:
    text = "Acme sells Acme Cloud."
    found = read(text)
    assert [text[span.start : span.end] for span in found["Acme"].spans] == ["Acme"]
    assert [text[span.start : span.end] for span in found["Acme Cloud"].spans] == ["Acme Cloud"]


def test_the_organizations_labels_are_the_only_ones() -> None:
    people_only = replace(VOCABULARY, entity_labels=("person",))
    found = read("Caroline: Acme GmbH moved to Lake Tahoe. Mel knows.", vocabulary=people_only)
    assert {name: one.label for name, one in found.items()} == {"Caroline": "person", "Melanie": "person"}
    no_people = replace(VOCABULARY, entity_labels=("company",))
    assert set(read("Caroline: Acme moved. Mel knows.", vocabulary=no_people)) == {"Acme"}


@pytest.mark.parametrize(
    ("text", "speakers"),
    [
        ("Caroline: Hey there! How have you been?", {"Caroline"}),
        ("Mel: I am fine, thanks.", {"Melanie"}),
        ("[00:01:02] Ana Silva: good morning\n[00:01:05] Ben: hi\nAna Silva: so\nBen: yes", {"Ana Silva", "Ben"}),
        ("**Dr. Weber:** The result is in.", {"Dr. Weber"}),
        ("Jean-Luc O'Neil: Engage, please.", {"Jean-Luc O'Neil"}),
        ("Ursula von Beck: I agree.", {"Ursula von Beck"}),
        ("JOHN: yes\nMARY: no\nJOHN: yes\nMARY: no", {"JOHN", "MARY"}),
        ("田中：こんにちは。\n佐藤：はい。", {"田中", "佐藤"}),
        ("Иван: Привет! Как дела?", {"Иван"}),
        ("Will: I'm coming!", {"Will"}),
    ],
)
def test_who_speaks_is_a_participant(text: str, speakers: set[str]) -> None:
    found = read(text)
    assert {name for name, one in found.items() if one.role is EntityRole.PARTICIPANT} == speakers
    assert all(found[name].label == "person" for name in speakers)


@pytest.mark.parametrize(
    "text",
    [
        "Note: buy milk today, it is urgent.",
        "Warning: this is hot! TODO: cool it. Q: why? A: because.",
        "Decision: we go with Kafka. It is settled.",
        "Subject: offer\nDate: today\nFrom: us",
        "Hinweis: Das ist wichtig. Bitte lesen!",
        "Acme: We are hiring.",
        "Billing: The work goes on. It is slow.",
        "BACKGROUND: We asked why. It is unclear.",
        "Budget: 4000 EUR",
        "https://example.org: a page. With text.",
        "the point: it is late. Really.",
    ],
)
def test_what_only_looks_like_a_speaker_is_none(text: str) -> None:
    assert not [one for one in read(text).values() if one.role is EntityRole.PARTICIPANT]


@pytest.mark.parametrize(
    ("text", "name", "label"),
    [
        ("We signed with Siemens Energy AG last week.", "Siemens Energy AG", "company"),
        ("The Blue Fox Ltd. signed.", "Blue Fox Ltd", "company"),
        ("Die Firma Müller GmbH zahlt.", "Müller GmbH", "company"),
        ("she works at Nordwind now", "Nordwind", "company"),
        ("we met Dr. Weber there", "Weber", "person"),
        ("our CEO Jane van der Berg declined", "Jane van der Berg", "person"),
        ("Ana Silva, our new manager, agreed", "Ana Silva", "person"),
        ("Yesterday Ana Silva said no", "Ana Silva", "person"),
        ("Hey Tom! Nice.", "Tom", "person"),
        ("write to ana@nordwind.example please", "ana@nordwind.example", "person"),
        ("see https://www.nordwind.example/x?y=1 for it", "nordwind.example", "company"),
        ("Project Apollo is late", "Apollo", "project"),
        ("the Mercury project too", "Mercury", "project"),
        ("he moved to New Orleans", "New Orleans", "place"),
        ("we stayed at Lake Tahoe", "Lake Tahoe", "place"),
        ("order RX-7741-Q shipped", "RX-7741-Q", "product"),
    ],
)
def test_cues_tell_what_a_name_is(text: str, name: str, label: str) -> None:
    assert labels(text) == {name: label}


@pytest.mark.parametrize(
    "text",
    [
        "In March the English team met on Monday.",
        "Use UTF-8 and ISO-8601, as RFC-2119 says.",
        "write to info@nordwind.example or see localhost",
        "Stakeholders said so. Professionals agreed.",
        "Das Projekt ist in Ordnung, im Protokoll steht der Hinweis zum Termin.",
        "i like it",
        "",
    ],
)
def test_weak_looks_name_nothing(text: str) -> None:
    assert labels(text) == {}


def test_a_frequent_name_convinces_by_its_places() -> None:
    once = "He is in Lisbon now."
    often = "He is in Lisbon now. I came to Lisbon too. Life in Lisbon is good."
    assert "Lisbon" not in labels(once)
    assert labels(often)["Lisbon"] == "place"


def test_a_name_with_two_readings_is_left_out() -> None:
    assert "Mercury" not in labels("Project Mercury began. She works at Mercury.")


@pytest.mark.parametrize(
    ("text", "title", "role"),
    [
        ("A text about them.", "Acme offer", EntityRole.TOPIC),
        ("Acme is our customer.", None, EntityRole.TOPIC),
        ("The Acme is our customer.", None, EntityRole.TOPIC),
        ("We like Acme. They like Acme. All like Acme.", None, EntityRole.TOPIC),
        ("We like Acme.", None, EntityRole.MENTIONED),
        ("Ana: Acme is our customer. Yes.", None, EntityRole.MENTIONED),
    ],
)
def test_the_role_tells_how_much_it_matters(text: str, title: str | None, role: EntityRole) -> None:
    assert read(text, title=title)["Acme"].role is role


def test_who_speaks_stays_a_participant_when_named_by_others() -> None:
    found = read("Ana: Hi! Ben is here.\nBen: Hey Ana! I'm here.")
    assert {name: one.role for name, one in found.items()} == dict.fromkeys(("Ana", "Ben"), EntityRole.PARTICIPANT)
    assert len(found["Ana"].spans) == 2


async def test_long_and_short_texts_read_the_same() -> None:
    text = "We met Acme at Lake Tahoe. "
    long = await EXTRACTOR.extract(text * 1_000, vocabulary=VOCABULARY)
    short = await EXTRACTOR.extract(text, vocabulary=VOCABULARY)
    assert {one.name for one in long.entities} == {one.name for one in short.entities} == {"Acme", "Lake Tahoe"}


def test_an_entity_is_told_once_per_label() -> None:
    extraction: Extraction = EXTRACTOR.read("Acme GmbH and acme gmbh, Acme", vocabulary=DEFAULT)
    assert [one.name for one in extraction.entities] == ["Acme GmbH"]


def test_every_turn_of_the_sample_conversations_has_its_speaker(locomo: list[tuple[str, str]]) -> None:
    heard = [(EXTRACTOR.read(text, vocabulary=DEFAULT).entities[0], speaker) for text, speaker in locomo[::7]]
    assert all(one.name == speaker and one.role is EntityRole.PARTICIPANT for one, speaker in heard)


@pytest.fixture(scope="module")
def locomo() -> list[tuple[str, str]]:
    path = Path(__file__).parents[3] / "shared" / "data" / "locomo" / "corpus.jsonl"
    if not path.is_file():
        pytest.skip("the public evaluation data is not beside this checkout")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [(row["text"], row["meta"]["speaker"]) for row in rows]
