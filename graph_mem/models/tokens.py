"""Counting the tokens of a text, for budgets."""

from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from graph_mem.errors import SetupError
from graph_mem.models.folder import TOKENIZER


class Tokenizer(Protocol):
    """What a budget is counted in."""

    def count(self, text: str) -> int:
        """How many tokens `text` has, without those that a model puts around it."""
        ...


class FileTokenizer:
    """The tokenizer of one model, as the `tokenizers` library reads it."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def count(self, text: str) -> int:
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)


def load_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer in the model folder `folder`; SetupError if there is none."""
    path = folder / TOKENIZER
    if not path.is_file():
        raise SetupError(f"The model folder {folder.name!r} has no {TOKENIZER.name}.")
    return FileTokenizer(import_module("tokenizers").Tokenizer.from_file(str(path)))
