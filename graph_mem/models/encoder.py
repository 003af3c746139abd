"""The port every embedding model is used through."""

from typing import Literal, Protocol, TypeAlias

import numpy as np

from graph_mem.core.vectors import Vectors
from graph_mem.errors import DimensionMismatch, EmbedderUnavailable
from graph_mem.models.profile import ModelProfile

Kind: TypeAlias = Literal["query", "passage"]


class Encoder(Protocol):
    """An embedding model. Blocking, and safe to call from two threads at once."""

    @property
    def profile(self) -> ModelProfile: ...

    def encode(self, texts: list[str], *, kind: Kind) -> Vectors:
        """One unit vector per text, shape (len(texts), dimension)."""
        ...

    def close(self) -> None: ...


def prompted(texts: list[str], *, kind: Kind, profile: ModelProfile) -> list[str]:
    """`texts` as the model wants to read them."""
    prompt = profile.query_prompt if kind == "query" else profile.passage_prompt
    return [prompt + text for text in texts] if prompt else texts


def normalized(vectors: Vectors) -> Vectors:
    """`vectors` at length one; a zero stays zero for `checked` to refuse."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32, copy=False)


def checked(vectors: Vectors, *, texts: int, profile: ModelProfile) -> Vectors:
    """`vectors`, once they are one finite, non-zero vector of the right dimension per text.

    Errors: DimensionMismatch, EmbedderUnavailable.
    """
    rows, width = vectors.shape if vectors.ndim == 2 else (len(vectors), 0)
    if width != profile.dimension:
        raise DimensionMismatch(f"{profile.name} gave vectors of dimension {width}, expected {profile.dimension}.")
    if rows != texts:
        raise EmbedderUnavailable(f"{profile.name} gave {rows} vectors for {texts} texts.")
    if not np.isfinite(vectors).all():
        raise EmbedderUnavailable(f"{profile.name} gave a vector with values that are not finite.")
    if not vectors.any(axis=1).all():
        raise EmbedderUnavailable(f"{profile.name} gave a vector of zeros.")
    return vectors
