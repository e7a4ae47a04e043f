"""Which words of an org somebody may have meant who mistyped one."""

from __future__ import annotations

from collections.abc import Iterable

_LONG = 9
"""From so many letters on two slips are forgiven, else one."""
_SHORT = 6
"""Of shorter words the first letter is believed: too many others are near."""
_MOST = 3


def nearest(word: str, known: Iterable[tuple[str, int]]) -> list[str]:
    """The nearest of these words, each with how common it is; none if all are too far."""
    allowed = 2 if len(word) >= _LONG else 1
    likely = [(other, common) for other, common in known if len(word) >= _SHORT or other[0] == word[0]]
    near = sorted((distance(word, other, allowed), -common, other) for other, common in likely)
    return [other for slips, _, other in near if slips == near[0][0] <= allowed][:_MOST]


def distance(one: str, other: str, most: int) -> int:
    """How many letters are missing, too many, wrong or swapped; past `most` it only says: more."""
    # A slip changes two letters of the set at most: that is quickly seen of most words.
    if abs(len(one) - len(other)) > most or len(set(one) ^ set(other)) > 2 * most:
        return most + 1
    return _counted(one, other, most)


def _counted(one: str, other: str, most: int) -> int:
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        earlier, before, row = before, row, [i]
        for j, against in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != against))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == against:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
        if min(row) > most and min(before) > most:
            break
    return row[-1]
