"""Which texts are nearly the same: shared runs of three words, counted if short, estimated if long.

A text is sketched by the smallest hashes of its runs (a bottom-k sketch). While all of them fit, two sketches
tell the exact Jaccard similarity; beyond that a close estimate, off by some 0.03.
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

ALIKE = 0.5
"""Below this, two texts merely have something in common."""
_RUN = 3
_KEPT = 256
_BYTES = 8


class LikenessFound(Value):
    """A sketch of a text, to be compared with others; the digest is that of all its words in order."""

    runs: int
    digest: str
    sketch: str


class Pair(Value):
    """Two sources that are alike, 1 being the same words; `exact` if that was counted, not estimated."""

    first: str
    second: str
    likeness: float
    exact: bool
    identical: bool


def sketch(text: str) -> LikenessFound:
    """What a text is known by."""
    found = [word.lower() for word in words(text)]
    hashes = {_hash(run) for run in _runs(found)}
    kept = b"".join(nsmallest(_KEPT, hashes))
    digest = hashlib.blake2b("\n".join(found).encode(errors="replace"), digest_size=16).hexdigest()
    return LikenessFound(runs=len(hashes), digest=digest, sketch=base64.b64encode(kept).decode())


def alike(found: Mapping[str, LikenessFound]) -> list[Pair]:
    """Every two sources that are alike, the closest first."""
    sketches = [_Sketch.of(name, one) for name, one in found.items() if one.runs]
    pairs = (_compared(first, second) for first, second in combinations(sketches, 2))
    return sorted(
        (pair for pair in pairs if pair is not None),
        key=lambda pair: (-pair.likeness, not pair.identical, pair.first, pair.second),
    )


class _Sketch(NamedTuple):
    name: str
    hashes: frozenset[int]
    whole: bool
    digest: str

    @classmethod
    def of(cls, name: str, found: LikenessFound) -> _Sketch:
        data = base64.b64decode(found.sketch)
        hashes = frozenset(number for (number,) in struct.iter_unpack(">Q", data))
        return cls(name, hashes, found.runs == len(hashes), found.digest)


def _compared(first: _Sketch, second: _Sketch) -> Pair | None:
    exact = first.whole and second.whole
    shared, union = first.hashes & second.hashes, first.hashes | second.hashes
    if not exact and shared:
        # The smallest hashes of both together are a fair sample of their runs.
        union = frozenset(sorted(union)[:_KEPT])
        shared &= union
    likeness = round(len(shared) / len(union), 3)
    if likeness < ALIKE:
        return None
    same = first.digest == second.digest
    return Pair(first=first.name, second=second.name, likeness=likeness, exact=exact, identical=same)


def _runs(found: Sequence[str]) -> Iterator[str]:
    """Every three words that follow one another; a shorter text is one run."""
    if found:
        for at in range(max(1, len(found) - _RUN + 1)):
            yield " ".join(found[at : at + _RUN])


def _hash(run: str) -> bytes:
    return hashlib.blake2b(run.encode(errors="replace"), digest_size=_BYTES).digest()
