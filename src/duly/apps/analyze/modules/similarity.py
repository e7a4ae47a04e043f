"""Near-duplicate detection: the Jaccard similarity of shingles of three words.

A text is sketched by the smallest hashes of its shingles (a bottom-k sketch). While all of them fit, two
sketches give the exact Jaccard similarity; beyond that an estimate with an error of about 0.03.
"""

from __future__ import annotations

import base64
import hashlib
import struct
from collections.abc import Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import combinations
from typing import NamedTuple

from duly.apps.analyze.text import words
from duly.apps.analyze.values import Value

_MIN_SIMILARITY = 0.5
_SHINGLE_WORDS = 3
_MAX_HASHES = 256
_HASH_BYTES = 8


class TextSketch(Value):
    """A sketch of a text, to compare it with others; the digest is that of all its words in order."""

    runs: int
    digest: str
    sketch: str


class SimilarPair(Value):
    """Two similar sources; 1 means the same shingles, and `exact` that it was computed, not estimated."""

    first: str
    second: str
    likeness: float
    exact: bool
    identical: bool


def sketch_text(text: str) -> TextSketch:
    """Return the sketch of a text."""
    lower = [word.lower() for word in words(text)]
    hashes = {_hash(shingle) for shingle in _shingles(lower)}
    smallest = b"".join(nsmallest(_MAX_HASHES, hashes))
    digest = hashlib.blake2b("\n".join(lower).encode(errors="replace"), digest_size=16).hexdigest()
    return TextSketch(runs=len(hashes), digest=digest, sketch=base64.b64encode(smallest).decode())


def find_similar(sketches: Mapping[str, TextSketch]) -> list[SimilarPair]:
    """Return all pairs of similar sources, the most similar first."""
    parsed = [_Sketch.parse(name, sketch) for name, sketch in sketches.items() if sketch.runs]
    pairs = (_compare(first, second) for first, second in combinations(parsed, 2))
    return sorted(
        (pair for pair in pairs if pair is not None),
        key=lambda pair: (-pair.likeness, not pair.identical, pair.first, pair.second),
    )


class _Sketch(NamedTuple):
    name: str
    hashes: frozenset[int]
    is_complete: bool
    digest: str

    @classmethod
    def parse(cls, name: str, sketch: TextSketch) -> _Sketch:
        data = base64.b64decode(sketch.sketch)
        hashes = frozenset(number for (number,) in struct.iter_unpack(">Q", data))
        return cls(name, hashes, sketch.runs == len(hashes), sketch.digest)


def _compare(first: _Sketch, second: _Sketch) -> SimilarPair | None:
    exact = first.is_complete and second.is_complete
    shared, union = first.hashes & second.hashes, first.hashes | second.hashes
    if not exact and shared:
        # The smallest hashes of both together are an unbiased sample of their shingles.
        union = frozenset(sorted(union)[:_MAX_HASHES])
        shared &= union
    similarity = round(len(shared) / len(union), 3)
    if similarity < _MIN_SIMILARITY:
        return None
    return SimilarPair(
        first=first.name,
        second=second.name,
        likeness=similarity,
        exact=exact,
        identical=first.digest == second.digest,
    )


def _shingles(lower: Sequence[str]) -> Iterator[str]:
    """Yield every three consecutive words; a shorter text is one shingle."""
    if lower:
        for start in range(max(1, len(lower) - _SHINGLE_WORDS + 1)):
            yield " ".join(lower[start : start + _SHINGLE_WORDS])


def _hash(shingle: str) -> bytes:
    return hashlib.blake2b(shingle.encode(errors="replace"), digest_size=_HASH_BYTES).digest()
