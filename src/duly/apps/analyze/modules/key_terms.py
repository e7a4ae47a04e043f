"""Key terms: frequent words and word pairs, without stop words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from duly.apps.analyze.modules.stopwords import stop_words
from duly.apps.analyze.text import ABBREVIATIONS, WORD, scan
from duly.apps.analyze.values import Value

_MAX_TERMS = 25
_MAX_TERMS_OF_SHORT_TEXT = 10
_LONG_TEXT = 80
"""Words from which on a term must occur more than once."""
_MIN_LENGTH, _MAX_LENGTH = 3, 60
_PAIR_WEIGHT = 1.6
"""A repeated pair is more specific than its two words."""
_ENDINGS = {"de": ("es", "en", "s", "n", "e"), "en": ("es", "s")}


class Term(Value):
    """A term in its most common spelling; the best score of a text is 1."""

    term: str
    count: int
    score: float


class SourceTerms(Value):
    """The key terms of a text, best first, and the number of distinct words."""

    distinct: int
    terms: tuple[Term, ...]


def key_terms(text: str, language: str) -> SourceTerms:
    """Return the key terms of a text."""
    spellings: dict[str, Counter[str]] = {}
    words: Counter[str] = Counter()
    pairs: Counter[str] = Counter()
    for first, second in _candidates(text, stop_words(language)):
        _count_term(first, words, spellings)
        if second is not None:
            _count_term(f"{first} {second}", pairs, spellings)
    distinct = len(words)
    _merge_endings(words, _ENDINGS.get(language, ()))
    scores = _scores(words, {pair: count for pair, count in pairs.items() if count > 1})
    counts = words | pairs
    best = _best_terms(scores, counts, is_long=sum(1 for _ in scan(WORD, text)) > _LONG_TEXT)
    terms = [
        Term(
            term=usual_spelling(spellings[term]),
            count=counts[term],
            score=round(scores[term] / (scores[best[0]] or 1), 3),
        )
        for term in best
    ]
    return SourceTerms(distinct=distinct, terms=tuple(terms))


def _count_term(written: str, counts: Counter[str], spellings: dict[str, Counter[str]]) -> None:
    term = written.lower()
    counts[term] += 1
    spellings.setdefault(term, Counter())[written] += 1


def usual_spelling(spellings: Counter[str]) -> str:
    """Return the most common spelling; of a tie that in lower case."""
    return min(spellings, key=lambda written: (-spellings[written], written.swapcase()))


def _best_terms(scores: Mapping[str, float], counts: Mapping[str, int], *, is_long: bool) -> list[str]:
    order = sorted(scores, key=lambda term: (-scores[term], term))
    if not is_long:
        return order[:_MAX_TERMS_OF_SHORT_TEXT]
    return [term for term in order if counts[term] > 1][:_MAX_TERMS]


def _candidates(text: str, stops: frozenset[str]) -> Iterator[tuple[str, str | None]]:
    """Yield each possible term, with the next one if only a space is between them."""
    previous: re.Match[str] | None = None
    for word in scan(WORD, text):
        is_term = _MIN_LENGTH <= len(word[0]) <= _MAX_LENGTH and word[0].lower() not in stops
        is_term = is_term and not _is_in_address(text, word) and not _is_abbreviation(text, word)
        if previous is not None:
            is_pair = is_term and text[previous.end() : word.start()] in (" ", "\n", "\u00a0")
            yield previous[0], word[0] if is_pair else None
        previous = word if is_term else None
    if previous is not None:
        yield previous[0], None


def _is_in_address(text: str, word: re.Match[str]) -> bool:
    """Return whether a word is part of name@example.com, a link or a file name."""
    before, after = text[max(0, word.start() - 2) : word.start()], text[word.end() : word.end() + 2]
    dotted = (before[-1:] == "." and before[:-1].isalnum()) or (after[:1] == "." and after[1:].isalnum())
    return dotted or before[-1:] in ("@", "/") or after[:1] == "@" or after == ":/"


def _is_abbreviation(text: str, word: re.Match[str]) -> bool:
    """Return whether a word is an abbreviation: `Art. 5` is one, `art` is not."""
    return text[word.end() : word.end() + 1] == "." and word[0].lower() in ABBREVIATIONS


def _merge_endings(words: Counter[str], endings: tuple[str, ...]) -> None:
    """Add the count of Verträgen to Verträge if that occurs too. Compounds are not changed."""
    for word in sorted(words, key=len, reverse=True):
        for ending in endings:
            stem = word.removesuffix(ending)
            if stem != word and len(stem) > _MIN_LENGTH and stem in words:
                words[stem] += words.pop(word)
                break


def _scores(words: Mapping[str, int], pairs: Mapping[str, int]) -> dict[str, float]:
    """Score by frequency, longer words higher; the occurrences of a word in pairs count less."""
    in_pairs: Counter[str] = Counter()
    for pair, count in pairs.items():
        for word in pair.split(" "):
            in_pairs[word] += count
    word_scores = {
        word: (count - 0.8 * min(count, in_pairs[word])) * _length_weight(word)
        for word, count in words.items()
    }
    pair_scores = {
        pair: count * _PAIR_WEIGHT * max(map(_length_weight, pair.split(" ")))
        for pair, count in pairs.items()
    }
    return word_scores | pair_scores


def _length_weight(word: str) -> float:
    return 1 + min(len(word), 20) / 20
