"""Generate any amount of text like that of a set: real sentences with generated rare words.

Common words stay, so that they are as frequent as in real text. Rare words are replaced by combinations of
their halves, few of them frequent and most of them rare, so that the vocabulary grows like a real one.
"""

from __future__ import annotations

import random
import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-ZÄÖÜ])")
_WORD = re.compile(r"[^\W\d_]{5,}")
_RARE = 4
"""Maximum number of sentences with a rare word."""
_UNCHANGED_SHARE = 0.07
"""Share of the rare words that stay unchanged."""
_VOCABULARY = 200_000
_LETTERS = 700


class Filler(NamedTuple):
    """A passage, and replacements for the parts of its compounds."""

    text: str
    parts: str


class Maker:
    """Generates passages; the same ones for the same seed."""

    def __init__(self, passages: Sequence[str], seed: int) -> None:
        self._chance = random.Random(seed)
        self._sentences = [s for text in passages for s in _SENTENCE.split(text) if len(s) > 30]
        counts = Counter(word for sentence in self._sentences for word in set(_WORD.findall(sentence)))
        self._rare = sorted(word for word, count in counts.items() if count <= _RARE)
        self._made = [self._word() for _ in range(_VOCABULARY)]
        self._weights = list(accumulate(1 / (rank + 20) for rank in range(_VOCABULARY)))

    def passages(self, count: int) -> Iterator[Filler]:
        """Yield this many passages."""
        rare = frozenset(self._rare)
        for _ in range(count):
            text = ""
            parts: list[str] = []

            def other(match: re.Match[str], parts: list[str] = parts) -> str:
                if match[0] not in rare or self._chance.random() < _UNCHANGED_SHARE:
                    return match[0]
                head, tail = self._made[bisect(self._weights, self._chance.random() * self._weights[-1])]
                if match[0][0].isupper():
                    parts += [head, tail]
                return head + tail

            while len(text) < _LETTERS:
                text += _WORD.sub(other, self._chance.choice(self._sentences)) + " "
            yield Filler(text.strip(), " ".join(parts))

    def _word(self) -> tuple[str, str]:
        head, tail = self._chance.choice(self._rare), self._chance.choice(self._rare)
        return head[: (len(head) + 1) // 2], tail[len(tail) // 2 :]
