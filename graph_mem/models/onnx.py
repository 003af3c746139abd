"""A sentence-transformers folder with ONNX weights, run without torch."""

import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from graph_mem.core.vectors import Vectors
from graph_mem.errors import SetupError
from graph_mem.models.encoder import Kind, normalized, prompted
from graph_mem.models.folder import TOKENIZER, WEIGHTS
from graph_mem.models.profile import ModelProfile, profile_of

Pooling: TypeAlias = Literal["mean", "cls"]


class Session(Protocol):
    """The part of `onnxruntime.InferenceSession` that is used."""

    def run(self, output_names: None, input_feed: dict[str, NDArray[np.int64]], /) -> Sequence[object]: ...


class Encoding(Protocol):
    """One text's tokens."""

    ids: list[int]
    attention_mask: list[int]


class BatchTokenizer(Protocol):
    """The part of `tokenizers.Tokenizer` that is used."""

    def encode_batch(self, input: list[str], /) -> list[Encoding]: ...


class OnnxEncoder:
    """onnxruntime and tokenizers alone: the vectors of sentence-transformers at a quarter of its memory."""

    def __init__(
        self,
        *,
        profile: ModelProfile,
        session: Session,
        inputs: frozenset[str],
        tokenizer: BatchTokenizer,
        pooling: Pooling,
    ) -> None:
        self._profile = profile
        self._session = session
        self._tokenizer = tokenizer
        self._pooling: Pooling = pooling
        self._inputs = inputs

    @property
    def profile(self) -> ModelProfile:
        return self._profile

    def encode(self, texts: list[str], *, kind: Kind) -> Vectors:
        step = self._profile.texts_per_run
        asked = prompted(texts, kind=kind, profile=self._profile)
        runs = [self._run(asked[start : start + step]) for start in range(0, len(asked), step)]
        return np.concatenate(runs) if runs else np.empty((0, self._profile.dimension), np.float32)

    def close(self) -> None:
        """Nothing to hand back."""

    def _run(self, texts: list[str]) -> Vectors:
        encodings = self._tokenizer.encode_batch(texts)
        ids = np.array([encoding.ids for encoding in encodings], dtype=np.int64)
        mask = np.array([encoding.attention_mask for encoding in encodings], dtype=np.int64)
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        outputs = self._session.run(None, {name: feed[name] for name in self._inputs})
        return normalized(_pooled(cast("NDArray[np.float32]", outputs[0]), mask, self._pooling))


def load_onnx(folder: Path, *, profile: ModelProfile | None = None) -> OnnxEncoder:
    """The model in `folder`, one thread per run; see `folder.py` for the layout.

    Errors: SetupError when a file is missing or cannot be read.
    """
    for name in (WEIGHTS, TOKENIZER):
        if not (folder / name).is_file():
            raise SetupError(f"The model folder {folder.name!r} has no {name.as_posix()}.")
    profile = profile or profile_of(str(folder))
    tokenizer = import_module("tokenizers").Tokenizer.from_file(str(folder / TOKENIZER))
    tokenizer.enable_truncation(profile.max_tokens)
    tokenizer.enable_padding()
    session = import_module("onnxruntime").InferenceSession(
        folder / WEIGHTS, session_options(), providers=["CPUExecutionProvider"]
    )
    return OnnxEncoder(
        profile=profile,
        session=session,
        inputs=frozenset(node.name for node in session.get_inputs()),
        tokenizer=tokenizer,
        pooling=_pooling_of(folder),
    )


def session_options() -> Any:
    """onnxruntime's options for one thread that sleeps when idle: two spin on a busy machine (p95 0.4-1.8 s)."""
    options = import_module("onnxruntime").SessionOptions()  # imported late: only this encoder's users pay for it
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


def _pooling_of(folder: Path) -> Pooling:
    path = folder / "1_Pooling" / "config.json"
    modes = cast("dict[str, object]", json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}
    if modes.get("pooling_mode_cls_token") or modes.get("pooling_mode") == "cls":
        return "cls"
    if modes.get("pooling_mode_mean_tokens", True) or modes.get("pooling_mode") == "mean":
        return "mean"
    raise SetupError(f"The model folder {folder.name!r} pools in a way that is neither mean nor first token.")


def _pooled(hidden: Vectors, mask: NDArray[np.int64], pooling: Pooling) -> Vectors:
    if pooling == "cls":
        return hidden[:, 0]
    weight = mask[..., None].astype(np.float32)
    return (hidden * weight).sum(axis=1) / weight.sum(axis=1)
