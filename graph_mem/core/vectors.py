"""Vectors as they travel between the model and the graph, and where they are in it."""

from dataclasses import dataclass, field
from typing import LiteralString

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
"""One embedding: (dimension,), float32, of length 1."""

Vectors = NDArray[np.float32]
"""Several embeddings: (count, dimension), float32, each of length 1."""


@dataclass(frozen=True, slots=True)
class Space:
    """Where the vectors of one model are: a vector index over one property of chunks and facts."""

    index: LiteralString
    property: LiteralString


FIRST = Space("passages", "embedding")
SECOND = Space("passages2", "embedding2")
"""The space beside the first: a move to another model fills the one that is free, and frees the other."""

SPACES = {space.index: space for space in (FIRST, SECOND)}


def other(space: Space) -> Space:
    return SECOND if space == FIRST else FIRST


@dataclass(frozen=True, slots=True)
class Source:
    """An embedding model, and how the settings name it, so that every process can load it. A key is no part of it."""

    model: str
    dimension: int
    embedder: str = field(compare=False)
    url: str | None = field(default=None, compare=False)
    endpoint_model: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Placed:
    """A model and the space that its vectors are in."""

    source: Source
    space: Space


@dataclass(frozen=True, slots=True)
class Vectorings:
    """Which model's vectors searches ask, and which one's are being made beside them. `version` only counts up."""

    version: int
    in_force: Placed
    beside: Placed | None = None
