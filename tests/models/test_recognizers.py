"""Recognizers that a user brings: chosen by a setting, absent ones named."""

from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from graph_mem.core.vocabulary import DEFAULT, Term
from graph_mem.errors import SetupError
from graph_mem.models.cues import CueRecognizer
from graph_mem.models.extractor import Extractor
from graph_mem.models.recognizers import GlinerRecognizer, SpacyRecognizer, load_recognizer

TEXT = "Nobody told Lagerlöf about the Fjord office. " * 100


@dataclass
class Entity:
    start_char: int
    end_char: int
    label_: str


@dataclass
class Document:
    ents: list[Entity]


def pipeline(text: str) -> Document:
    """Speaks as a spaCy pipeline does."""
    found = [(word, label) for word, label in (("Lagerlöf", "PERSON"), ("Fjord", "GPE"), ("Nobody", "DATE"))]
    return Document(
        [Entity(text.index(word), text.index(word) + len(word), label) for word, label in found if word in text]
    )


class Predictor:
    """Speaks as a GLiNER model does."""

    def predict_entities(self, text: str, labels: list[str], *, threshold: float) -> list[dict[str, Any]]:
        assert threshold > 0
        at = text.index("Fjord")
        return [{"start": at, "end": at + 5, "label": labels[-1], "score": 0.9}]


def test_spacy_labels_become_the_organizations() -> None:
    found = SpacyRecognizer(pipeline).recognize(TEXT, labels=("person", "place"))
    assert {(one.name, one.label) for one in found} == {("Lagerlöf", "person"), ("Fjord", "place")}
    assert all(TEXT[one.span.start : one.span.end] == one.name for one in found)


def test_labels_that_the_organization_lacks_are_left_out() -> None:
    assert {one.label for one in SpacyRecognizer(pipeline).recognize(TEXT, labels=("person",))} == {"person"}


def test_gliner_is_asked_for_the_organizations_own_labels() -> None:
    found = GlinerRecognizer(Predictor()).recognize(TEXT, labels=("person", "office"))
    assert len(found) > 1, "piece by piece"
    assert {(one.name, one.label) for one in found} == {("Fjord", "office")}
    assert all(TEXT[one.span.start : one.span.end] == "Fjord" for one in found)


async def test_the_vocabulary_comes_before_any_model() -> None:
    vocabulary = replace(DEFAULT, terms=(Term("Fjord office", "project"),))
    extraction = await Extractor(SpacyRecognizer(pipeline)).extract(TEXT, vocabulary=vocabulary)
    assert {(one.name, one.label) for one in extraction.entities} == {
        ("Fjord office", "project"),
        ("Lagerlöf", "person"),
    }


def test_rules_are_the_default() -> None:
    assert isinstance(load_recognizer("rules"), CueRecognizer)


@pytest.mark.parametrize("choice", ["", "spacy", "spacy:", "bert:x", "rules:x"])
def test_another_setting_is_a_setup_error(choice: str) -> None:
    with pytest.raises(SetupError, match="expected 'rules', 'spacy:NAME' or 'gliner:NAME'"):
        load_recognizer(choice)


@pytest.mark.parametrize("library", ["spacy", "gliner"])
def test_a_library_that_is_not_installed_is_named(library: str) -> None:
    if find_spec(library) is not None:
        pytest.skip(f"{library} is installed here")
    with pytest.raises(SetupError, match=f"needs the package '{library}'"):
        load_recognizer(f"{library}:en")


def test_a_real_spacy_pipeline_is_loaded_from_its_folder(tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy", reason="spaCy is the user's to install")
    blank = spacy.blank("en")
    blank.add_pipe("entity_ruler").add_patterns([{"label": "ORG", "pattern": "Fjord"}])
    blank.to_disk(tmp_path / "pipeline")
    found = load_recognizer(f"spacy:{tmp_path / 'pipeline'}").recognize(TEXT, labels=("company",))
    assert {one.name for one in found} == {"Fjord"}
    with pytest.raises(SetupError, match="not usable on this machine"):
        load_recognizer("spacy:no_such_model")
