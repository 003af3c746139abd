"""Vectors as they travel between the model and the graph."""

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
"""One embedding: (dimension,), float32, of length 1."""

Vectors = NDArray[np.float32]
"""Several embeddings: (count, dimension), float32, each of length 1."""
