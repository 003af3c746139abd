"""Names recognized by models that a user brings: spaCy pipelines and GLiNER, by name or folder.

Neither is a dependency. What each finds:
spaCy: the labels its pipeline was trained for, of which PERSON, ORG, GPE, LOC, FAC and PRODUCT have a counterpart here.
GLiNER: whatever the organization's own entity labels say, since it reads the labels together with the text.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

from graph_mem.core.segments import Span, chunks
from graph_mem.errors import SetupError
from graph_mem.models.cues import Candidate, CueRecognizer, Recognizer

SPACY_LABELS: Mapping[str, str] = {
    "PERSON": "person",
    "PER": "person",
    "ORG": "company",
    "GPE": "place",
    "LOC": "place",
    "FAC": "place",
    "PRODUCT": "product",
    "MISC": "product",
}
_PIECE_CHARACTERS = 1_500
_GLINER_THRESHOLD = 0.6


class _Entity(Protocol):
    start_char: int
    end_char: int
    label_: str


class _Document(Protocol):
    ents: Iterable[_Entity]


class _Pipeline(Protocol):
    def __call__(self, text: str) -> _Document: ...


class SpacyRecognizer:
    """Named entities of a spaCy pipeline; a label that is one of the organization's own passes as it is."""

    def __init__(self, pipeline: _Pipeline) -> None:
        self._pipeline = pipeline

    def recognize(self, text: str, *, labels: Sequence[str]) -> list[Candidate]:
        found: list[Candidate] = []
        for piece in chunks(text, whole_chars=20 * _PIECE_CHARACTERS, target_chars=10 * _PIECE_CHARACTERS):
            for entity in self._pipeline(text[piece.start : piece.end]).ents:
                label = entity.label_ if entity.label_ in labels else SPACY_LABELS.get(entity.label_)
                span = Span(piece.start + entity.start_char, piece.start + entity.end_char)
                if label is not None and label in labels:
                    found.append(Candidate(span, text[span.start : span.end], label))
        return found


class _Predictor(Protocol):
    def predict_entities(self, text: str, labels: list[str], *, threshold: float) -> list[dict[str, Any]]: ...


class GlinerRecognizer:
    """Zero-shot entities of a GLiNER model for the organization's own labels."""

    def __init__(self, model: _Predictor, *, threshold: float = _GLINER_THRESHOLD) -> None:
        self._model = model
        self._threshold = threshold

    def recognize(self, text: str, *, labels: Sequence[str]) -> list[Candidate]:
        found: list[Candidate] = []
        for piece in chunks(text, whole_chars=_PIECE_CHARACTERS, target_chars=_PIECE_CHARACTERS):
            content = text[piece.start : piece.end]
            for entity in self._model.predict_entities(content, list(labels), threshold=self._threshold):
                span = Span(piece.start + int(entity["start"]), piece.start + int(entity["end"]))
                if entity["label"] in labels:
                    found.append(Candidate(span, text[span.start : span.end], str(entity["label"])))
        return found


def load_recognizer(choice: str) -> Recognizer:
    """The recognizer that a setting names: `rules`, `spacy:NAME` or `gliner:NAME`, NAME a package, name or folder.

    Errors: SetupError when the library or the model is not on this machine, or the setting is none of these.
    """
    kind, _, name = choice.partition(":")
    if choice == "rules":
        return CueRecognizer()
    if kind == "spacy" and name:
        return SpacyRecognizer(_load("spacy", name, lambda library: library.load(name)))
    if kind == "gliner" and name:
        return GlinerRecognizer(
            _load("gliner", name, lambda library: library.GLiNER.from_pretrained(name, local_files_only=True))
        )
    raise SetupError(f"Extractor {choice!r}: expected 'rules', 'spacy:NAME' or 'gliner:NAME'.")


def _load(library: str, name: str, load: Callable[[Any], Any]) -> Any:
    try:
        module = import_module(library)
    except ImportError as error:
        raise SetupError(f"The extractor {library}:{name} needs the package {library!r}: install it.") from error
    try:
        return load(module)
    except (OSError, ValueError) as error:
        raise SetupError(f"The {library} model {name!r} is not usable on this machine: {error}") from error
