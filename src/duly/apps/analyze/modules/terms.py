"""Key terms: words and pairs of words that come often, without those that say nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from duly.apps.analyze.modules.stopwords import stop_words
from duly.apps.analyze.text import ABBREVIATED, WORD, scan
from duly.apps.analyze.values import Value

MOST_TERMS = 25
_MOST_OF_SHORT = 10
# In a text of so many words, what is said once is not what it is about.
_LONG = 80
_SHORTEST, _LONGEST = 3, 60
# A pair that comes twice says more than its two words.
_PAIR_WEIGHT = 1.6
_ENDINGS = {"de": ("es", "en", "s", "n", "e"), "en": ("es", "s")}


class Term(Value):
    """A term in its most common spelling; the best score of a text is 1."""

    term: str
    count: int
    score: float


class TermsFound(Value):
    """The terms that stand out, best first, of so many different ones."""

    distinct: int
    terms: tuple[Term, ...]


def key_terms(text: str, language: str) -> TermsFound:
    """What the text is about."""
    spelled = _Spellings()
    singles: Counter[str] = Counter()
    pairs: Counter[str] = Counter()
    for first, second in _candidates(text, stop_words(language)):
        singles[spelled.noted(first)] += 1
        if second is not None:
            pairs[spelled.noted(f"{first} {second}")] += 1
    distinct = len(singles)
    _merge_endings(singles, _ENDINGS.get(language, ()))
    scores = _scores(singles, {pair: n for pair, n in pairs.items() if n > 1})
    counts = singles | pairs
    best = _best(scores, counts, long=sum(1 for _ in scan(WORD, text)) > _LONG)
    terms = [
        Term(
            term=spelled.best(term), count=counts[term], score=round(scores[term] / (scores[best[0]] or 1), 3)
        )
        for term in best
    ]
    return TermsFound(distinct=distinct, terms=tuple(terms))


def _best(scores: Mapping[str, float], counts: Mapping[str, int], *, long: bool) -> list[str]:
    """The terms that stand out: in a long text those that come again, in a short one a few."""
    order = sorted(scores, key=lambda term: (-scores[term], term))
    return [term for term in order if counts[term] > 1][:MOST_TERMS] if long else order[:_MOST_OF_SHORT]


class _Spellings:
    """How each term is written, most often."""

    def __init__(self) -> None:
        self._seen: dict[str, Counter[str]] = {}

    def noted(self, written: str) -> str:
        term = written.lower()
        self._seen.setdefault(term, Counter())[written] += 1
        return term

    def best(self, term: str) -> str:
        seen = self._seen[term]
        # Of two spellings as frequent, the small one: the other may begin its sentences.
        return min(seen, key=lambda written: (-seen[written], written.swapcase()))


def _candidates(text: str, stops: frozenset[str]) -> Iterator[tuple[str, str | None]]:
    """Each word that may be a term, with the one that follows it if only a space is between."""
    held: re.Match[str] | None = None
    for found in scan(WORD, text):
        may = _SHORTEST <= len(found[0]) <= _LONGEST and found[0].lower() not in stops
        may = may and not _is_of_an_address(text, found) and not _is_abbreviated(text, found)
        if held is not None:
            near = may and text[held.end() : found.start()] in (" ", "\n", "\u00a0")
            yield held[0], found[0] if near else None
        held = found if may else None
    if held is not None:
        yield held[0], None


def _is_of_an_address(text: str, found: re.Match[str]) -> bool:
    """Whether it is part of name@example.com, a link or the name of a file."""
    before, after = text[max(0, found.start() - 2) : found.start()], text[found.end() : found.end() + 2]
    dotted = (before[-1:] == "." and before[:-1].isalnum()) or (after[:1] == "." and after[1:].isalnum())
    return dotted or before[-1:] in ("@", "/") or after[:1] == "@" or after == ":/"


def _is_abbreviated(text: str, found: re.Match[str]) -> bool:
    """As in `Art. 5`; in art, it is a word."""
    return text[found.end() : found.end() + 1] == "." and found[0].lower() in ABBREVIATED


def _merge_endings(singles: Counter[str], endings: tuple[str, ...]) -> None:
    """Count Verträgen to Verträge, if that comes too. Compounds stay as they are."""
    for word in sorted(singles, key=len, reverse=True):
        for ending in endings:
            stem = word.removesuffix(ending)
            if stem != word and len(stem) > _SHORTEST and stem in singles:
                singles[stem] += singles.pop(word)
                break


def _scores(singles: Mapping[str, int], pairs: Mapping[str, int]) -> dict[str, float]:
    """By frequency, longer words a little more; what a pair has said already is not said again."""
    within: Counter[str] = Counter()
    for pair, count in pairs.items():
        for word in pair.split(" "):
            within[word] += count
    alone = {word: (n - 0.8 * min(n, within[word])) * _weight(word) for word, n in singles.items()}
    together = {pair: n * _PAIR_WEIGHT * max(map(_weight, pair.split(" "))) for pair, n in pairs.items()}
    return alone | together


def _weight(word: str) -> float:
    return 1 + min(len(word), 20) / 20
