"""Encoders for tests that are about order, not meaning, and encoders that fail on request."""

import time
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from hashlib import blake2b

import numpy as np

from graph_mem.core.vectors import Vectors
from graph_mem.models.embedder import Embedder, EmbedderLimits
from graph_mem.models.encoder import Encoder, Kind, normalized
from graph_mem.models.profile import ModelProfile

DIMENSION = 384


def profile(dimension: int = DIMENSION) -> ModelProfile:
    return ModelProfile(name="hash", dimension=dimension)


class HashEncoder:
    """Each word votes for one coordinate: texts that share words are near, deterministic over processes."""

    def __init__(self, dimension: int = DIMENSION) -> None:
        self.profile = profile(dimension)

    def encode(self, texts: list[str], *, kind: Kind) -> Vectors:
        vectors = np.zeros((len(texts), self.profile.dimension), np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            vector[0] = 0.05  # a text without words still has a direction
            for word in text.casefold().split():
                vector[self._place(word)] += 1
        return normalized(vectors)

    def close(self) -> None:
        return

    def _place(self, word: str) -> int:
        digest = blake2b(word.strip(".,:;!?\"'()").encode(), digest_size=8).digest()
        return 1 + int.from_bytes(digest) % (self.profile.dimension - 1)


class Fault(Enum):
    NONE = "none"
    RAISES = "raises"
    SLOW = "slow"
    WRONG_DIMENSION = "wrong dimension"
    NOT_FINITE = "not finite"
    ZERO = "zero"
    TOO_FEW = "too few"


@dataclass
class FaultyEncoder:
    """An encoder that behaves as `fault` says, from one call to the next; `calls` is what it was asked."""

    inner: Encoder = field(default_factory=HashEncoder)
    fault: Fault = Fault.NONE
    slow_s: float = 0.5
    poison: str | None = None
    calls: list[tuple[Kind, tuple[str, ...]]] = field(default_factory=list)
    closed: bool = False

    @property
    def profile(self) -> ModelProfile:
        return self.inner.profile

    def encode(self, texts: list[str], *, kind: Kind) -> Vectors:
        self.calls.append((kind, tuple(texts)))
        vectors = self.inner.encode(texts, kind=kind)
        if self.poison is not None and any(self.poison in text for text in texts):
            raise RuntimeError("poisoned")
        match self.fault:
            case Fault.NONE:
                return vectors
            case Fault.RAISES:
                raise RuntimeError("the model is broken")
            case Fault.SLOW:
                time.sleep(self.slow_s)
                return vectors
            case Fault.WRONG_DIMENSION:
                return vectors[:, :-1]
            case Fault.NOT_FINITE:
                return np.full_like(vectors, np.nan)
            case Fault.ZERO:
                return np.zeros_like(vectors)
            case Fault.TOO_FEW:
                return vectors[:-1]

    def close(self) -> None:
        self.closed = True


QUICK = EmbedderLimits(query_timeout_s=0.1, probe_every_s=0.05, reload_every_s=0.05)


async def embedder_around(encoder: Encoder, *, limits: EmbedderLimits = QUICK) -> Embedder:
    """A loaded embedder; whoever asks for it closes it."""
    embedder = Embedder(partial(_itself, encoder), profile=encoder.profile, limits=limits)
    embedder.start()
    await embedder.settled()
    return embedder


def _itself(encoder: Encoder) -> Encoder:
    return encoder
