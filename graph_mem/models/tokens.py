"""How long a text is to a model: the tokenizer that budgets are counted with."""

from collections import OrderedDict
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Protocol

from graph_mem.errors import SetupError
from graph_mem.models.folder import TOKENIZER


class Tokenizer(Protocol):
    """Counts tokens. Blocking, and safe to call from two threads at once."""

    def count(self, text: str) -> int:
        """Tokens of `text` alone, without those that mark its beginning and end."""
        ...


class _Encoding(Protocol):
    def __len__(self) -> int: ...


class _FileTokenizer(Protocol):
    """The part of `tokenizers.Tokenizer` that is used."""

    def encode(self, sequence: str, /, *, add_special_tokens: bool) -> _Encoding: ...


class FileTokenizer:
    """A tokenizer out of a `tokenizer.json`, as most published models carry one."""

    def __init__(self, tokenizer: _FileTokenizer) -> None:
        self._tokenizer = tokenizer

    def count(self, text: str) -> int:
        return len(self._tokenizer.encode(text, add_special_tokens=False))


class RememberedCounts:
    """A tokenizer that counts a text once: canon comes again with every run, and counting is most of rendering it.

    Keeps a digest and a number for each of the last `size` texts, never the text. May be asked from any thread.
    """

    def __init__(self, tokenizer: Tokenizer, *, size: int = 50_000) -> None:
        self._tokenizer = tokenizer
        self._size = size
        self._known: OrderedDict[bytes, int] = OrderedDict()

    def count(self, text: str) -> int:
        key = sha256(text.encode()).digest()
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._tokenizer.count(text)
            while len(self._known) > self._size:
                self._known.popitem(last=False)
        return found


def load_tokenizer(model: str | Path) -> FileTokenizer:
    """The tokenizer at `model`: a `tokenizer.json`, a folder with one, or a name that this machine's cache holds.

    Errors: SetupError when there is none or it cannot be read.
    """
    path = _find(str(model))
    if path is None:
        raise SetupError(f"There is no tokenizer.json for {str(model)!r} on this machine: give a folder that has one.")
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"The tokenizer {path.name!r} cannot be read: {error}.") from error
    module = import_module("tokenizers")  # imported late: only processes that count tokens pay for it
    try:
        tokenizer = module.Tokenizer.from_str(content)
    except Exception as error:  # this very class is what the library raises
        raise SetupError(f"{path.name!r} is no tokenizer of the `tokenizers` library: {error}.") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return FileTokenizer(tokenizer)


def _find(model: str) -> Path | None:
    path = Path(model)
    if path.is_file():
        return path
    if path.is_dir():
        return path / TOKENIZER if (path / TOKENIZER).is_file() else None
    if model.count("/") > 1:
        return None
    cached = import_module("huggingface_hub").try_to_load_from_cache(model, TOKENIZER.name)
    return Path(cached) if isinstance(cached, str) else None
