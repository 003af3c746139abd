"""Token counts that budgets rely on."""

from pathlib import Path

import pytest

from graph_mem.errors import SetupError
from graph_mem.models.tokens import FileTokenizer, load_tokenizer


@pytest.fixture(scope="module")
def tokenizer(model_folder: Path) -> FileTokenizer:
    return load_tokenizer(str(model_folder))


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("hello world", 2), ("東京", 2), ("hello, world!", 4)])
def test_tokens_are_counted_without_marks(tokenizer: FileTokenizer, text: str, tokens: int) -> None:
    assert tokenizer.count(text) == tokens


def test_a_long_text_is_counted_to_its_end(tokenizer: FileTokenizer) -> None:
    assert tokenizer.count("word " * 5_000) == 5_000


def test_the_embedders_own_use_does_not_change_the_count(tokenizer: FileTokenizer, encoder: object) -> None:
    assert tokenizer.count("word " * 600) == 600


def test_a_file_and_its_folder_are_the_same(model_folder: Path, tokenizer: FileTokenizer) -> None:
    assert load_tokenizer(str(model_folder / "tokenizer.json")).count("some text") == tokenizer.count("some text")


@pytest.mark.parametrize("model", ["acme/no-such-model", "/no/such/folder/at/all"])
def test_a_tokenizer_that_is_not_here_is_a_setup_error(model: str) -> None:
    with pytest.raises(SetupError, match=r"no tokenizer\.json for"):
        load_tokenizer(model)


def test_a_file_that_is_no_tokenizer_is_a_setup_error(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(SetupError, match="is no tokenizer"):
        load_tokenizer(str(tmp_path))
