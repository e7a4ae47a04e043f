"""Correct the spelling of a word by the words of the org, with a bounded edit distance."""

from __future__ import annotations

from collections.abc import Iterable

_TWO_EDITS_LENGTH = 9
"""Letters from which on two edits are allowed, else one."""
_FREE_FIRST_LETTER_LENGTH = 6
"""The first letter of a shorter word must match: too many other words are near."""
_MAX_CORRECTIONS = 3


def nearest_words(word: str, known: Iterable[tuple[str, int]]) -> list[str]:
    """Return the nearest of the known words, given with their frequencies; none if all are too far."""
    allowed = 2 if len(word) >= _TWO_EDITS_LENGTH else 1
    any_first_letter = len(word) >= _FREE_FIRST_LETTER_LENGTH
    near = sorted(
        (edit_distance(word, other, allowed), -frequency, other)
        for other, frequency in known
        if any_first_letter or other[0] == word[0]
    )
    return [other for distance, _, other in near if distance == near[0][0] <= allowed][:_MAX_CORRECTIONS]


def edit_distance(one: str, other: str, limit: int) -> int:
    """Return the number of missing, extra, wrong or swapped letters; above the limit some larger number."""
    # An edit changes the set of letters by two at most, which excludes nearly all words quickly.
    if abs(len(one) - len(other)) > limit or len(set(one) ^ set(other)) > 2 * limit:
        return limit + 1
    previous: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        earlier, previous, row = previous, row, [i]
        for j, against in enumerate(other, 1):
            cost = min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (letter != against))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == against:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
        if min(row) > limit and min(previous) > limit:
            break
    return row[-1]
