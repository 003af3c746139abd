"""Any sentence-transformers model, by folder or by a name that this machine already holds."""

from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from graph_mem.core.vectors import Vectors
from graph_mem.errors import SetupError
from graph_mem.models.encoder import Kind, prompted
from graph_mem.models.folder import WEIGHTS
from graph_mem.models.onnx import session_options
from graph_mem.models.profile import ModelProfile, is_onnx_folder, profile_of


class Model(Protocol):
    """The part of `sentence_transformers.SentenceTransformer` that is used."""

    def encode(
        self,
        inputs: list[str],
        *,
        batch_size: int,
        normalize_embeddings: bool,
        convert_to_numpy: bool,
        show_progress_bar: bool,
    ) -> Vectors: ...


class SentenceEncoder:
    """A sentence-transformers model, on torch or on its ONNX backend."""

    def __init__(self, model: Model, *, profile: ModelProfile) -> None:
        self._model = model
        self._profile = profile

    @property
    def profile(self) -> ModelProfile:
        return self._profile

    def encode(self, texts: list[str], *, kind: Kind) -> Vectors:
        if not texts:
            return np.empty((0, self._profile.dimension), np.float32)
        return self._model.encode(
            prompted(texts, kind=kind, profile=self._profile),
            batch_size=self._profile.texts_per_run,
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
        )

    def close(self) -> None:
        """Nothing to hand back."""


def load_sentence_transformer(model: str, *, profile: ModelProfile | None = None, threads: int = 1) -> SentenceEncoder:
    """`model` on the CPU, from a folder or from the local cache: nothing is fetched.

    A folder with ONNX weights only runs on the ONNX backend, any other on torch with `threads` threads.
    Errors: SetupError when the model is not on this machine or cannot be read.
    """
    profile = profile or profile_of(model)
    import_module("torch").set_num_threads(threads)  # imported late: seconds that only this encoder's users pay
    load: Any = import_module("sentence_transformers").SentenceTransformer
    onnx = is_onnx_folder(Path(model))
    options: dict[str, Any] = {"backend": "onnx", "model_kwargs": _onnx_options()} if onnx else {"backend": "torch"}
    try:
        loaded = load(model, device="cpu", local_files_only=True, **options)
    except (OSError, ValueError) as error:
        raise SetupError(f"The sentence-transformers model {model!r} is not usable on this machine: {error}") from error
    loaded.max_seq_length = profile.max_tokens
    return SentenceEncoder(loaded, profile=profile)


def _onnx_options() -> dict[str, object]:
    return {"file_name": WEIGHTS.as_posix(), "provider": "CPUExecutionProvider", "session_options": session_options()}
