"""What is known about a model before it is loaded."""

import json
from pathlib import Path

import pytest

from graph_mem.errors import SetupError
from graph_mem.models.folder import complete_model_folder
from graph_mem.models.profile import E5_SMALL_INT8, ModelProfile, profile_of


def test_the_default_folder_is_the_default_profile(model_folder: Path) -> None:
    assert profile_of(str(model_folder)) == E5_SMALL_INT8


@pytest.mark.parametrize(
    ("model", "dimension", "query", "passage", "lexical"),
    [
        ("intfloat/e5-small-v2", 384, "query: ", "passage: ", 0.4),
        ("intfloat/multilingual-e5-large", 1024, "query: ", "passage: ", 0.4),
        ("BAAI/bge-small-en-v1.5", 384, "Represent this sentence for searching relevant passages: ", "", 0.5),
        ("sentence-transformers/all-MiniLM-L6-v2", 384, "", "", 0.6),
        ("text-embedding-3-large", 3072, "", "", 0.5),
    ],
)
def test_families_are_known_by_name(model: str, dimension: int, query: str, passage: str, lexical: float) -> None:
    profile = profile_of(model)
    assert (profile.dimension, profile.query_prompt, profile.passage_prompt) == (dimension, query, passage)
    assert (profile.lexical_weight, profile.vector_weight) == (lexical, pytest.approx(1 - lexical))


def test_an_unknown_model_needs_its_dimension() -> None:
    with pytest.raises(SetupError, match="does not know the embedding model 'acme/embed': say the dimension"):
        profile_of("acme/embed")
    profile = profile_of("acme/embed", dimension=512)
    assert profile == ModelProfile(name="acme/embed", dimension=512)
    assert (profile.lexical_weight, profile.vector_weight) == (0.5, 0.5)


def test_the_operator_has_the_last_word_on_the_dimension() -> None:
    assert profile_of("text-embedding-3-large", dimension=384).dimension == 384


def test_a_folder_tells_its_own_dimension_and_prompts(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"hidden_size": 768, "_name_or_path": "acme/other"}))
    assert profile_of(str(tmp_path)).dimension == 768
    (tmp_path / "2_Dense").mkdir()
    (tmp_path / "2_Dense" / "config.json").write_text(json.dumps({"out_features": 128}))
    prompts = {"prompts": {"query": "ask: ", "document": "text: "}}
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    (tmp_path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 256}))
    profile = profile_of(str(tmp_path))
    assert (profile.dimension, profile.max_tokens) == (128, 256)
    assert (profile.query_prompt, profile.passage_prompt) == ("ask: ", "text: ")


def test_a_folder_that_is_not_json_is_a_setup_error(tmp_path: Path) -> None:
    complete_model_folder(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(SetupError, match=r"config\.json of the model folder is not JSON"):
        profile_of(str(tmp_path))
