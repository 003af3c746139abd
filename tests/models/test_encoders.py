"""The default weights give the same vectors with torch and without, and mean something."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from graph_mem.errors import SetupError
from graph_mem.models.folder import E5_SMALL_FILES, complete_model_folder
from graph_mem.models.onnx import OnnxEncoder, load_onnx
from graph_mem.models.sentence import SentenceEncoder, load_sentence_transformer

TEXTS = [
    "Berlin is the capital of Germany.",
    "The invoice was paid on 3 March.",
    "x",
    "Größe, naïve café, 東京 và emoji 🙂",
    "a long text " * 600,
]


@pytest.fixture(scope="session")
def sentence_encoder(model_folder: Path) -> SentenceEncoder:
    return load_sentence_transformer(str(model_folder))


def test_meaning_ranks_the_answer_first(encoder: OnnxEncoder) -> None:
    passages = encoder.encode([*TEXTS[:3], "Ana moved to Lisbon last year."], kind="passage")
    query = encoder.encode(["Where does Ana live now?"], kind="query")[0]
    assert int(np.argmax(passages @ query)) == 3


def test_vectors_are_unit_length_and_of_the_profile(encoder: OnnxEncoder) -> None:
    vectors = encoder.encode(TEXTS, kind="passage")
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(TEXTS), encoder.profile.dimension)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert encoder.encode([], kind="query").shape == (0, 384)


def test_a_text_has_one_vector_whatever_it_is_batched_with(encoder: OnnxEncoder) -> None:
    alone = np.concatenate([encoder.encode([text], kind="passage") for text in TEXTS])
    assert np.array_equal(encoder.encode(TEXTS, kind="passage"), alone)


def test_query_and_passage_are_prompted_apart(encoder: OnnxEncoder) -> None:
    query, passage = (encoder.encode([TEXTS[0]], kind=kind)[0] for kind in ("query", "passage"))
    assert 0.5 < float(query @ passage) < 0.9999


@pytest.mark.parametrize("kind", ["query", "passage"])
def test_without_torch_the_vectors_are_the_same(
    encoder: OnnxEncoder, sentence_encoder: SentenceEncoder, kind: str
) -> None:
    ours = encoder.encode(TEXTS, kind=kind)
    theirs = sentence_encoder.encode(TEXTS, kind=kind)
    assert float((ours * theirs).sum(axis=1).min()) >= 0.9999
    assert sentence_encoder.encode([], kind=kind).shape == (0, 384)


@pytest.mark.parametrize("which", ["encoder", "sentence_encoder"])
def test_two_threads_do_not_disturb_each_other(which: str, request: pytest.FixtureRequest) -> None:
    encoder = request.getfixturevalue(which)
    expected = encoder.encode(TEXTS, kind="passage")
    with ThreadPoolExecutor(2) as threads:
        passages = threads.submit(lambda: [encoder.encode(TEXTS, kind="passage") for _ in range(5)])
        queries = threads.submit(lambda: [encoder.encode([TEXTS[0]], kind="query") for _ in range(50)])
    assert all(np.array_equal(vectors, expected) for vectors in passages.result())
    assert len({vectors.tobytes() for vectors in queries.result()}) == 1


def test_the_small_encoder_imports_no_torch(model_folder: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from graph_mem.models.onnx import load_onnx;"
        f"load_onnx(Path({str(model_folder)!r})).encode(['text'], kind='query');"
        "assert not {'torch', 'transformers', 'sentence_transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_folder_without_weights_is_a_setup_error(tmp_path: Path) -> None:
    complete_model_folder(tmp_path)
    with pytest.raises(SetupError, match=r"has no onnx/model\.onnx"):
        load_onnx(tmp_path)


def test_a_model_that_is_not_here_is_a_setup_error_and_nothing_is_fetched(tmp_path: Path) -> None:
    complete_model_folder(tmp_path)
    with pytest.raises(SetupError, match="not usable on this machine"):
        load_sentence_transformer(str(tmp_path))


def test_a_torn_small_file_is_written_again(tmp_path: Path) -> None:
    complete_model_folder(tmp_path)
    (tmp_path / "config.json").write_text("{", encoding="utf-8")
    complete_model_folder(tmp_path)
    assert (tmp_path / "config.json").read_text(encoding="utf-8").endswith("}\n")
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.json")} == set(E5_SMALL_FILES)
