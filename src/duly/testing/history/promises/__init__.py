"""The promises I1 to I19, each a function of a history; `check` asks all of them."""

from __future__ import annotations

from duly.testing.history.book import Book, Promise
from duly.testing.history.promises.attempts import i6, i8, i9, i18
from duly.testing.history.promises.effects import i7, i11
from duly.testing.history.promises.lasting import i19
from duly.testing.history.promises.leases import i17
from duly.testing.history.promises.readers import i14, i15, i16
from duly.testing.history.promises.results import i5, i12
from duly.testing.history.promises.schedules import i13
from duly.testing.history.promises.steps import i2, i3, i4
from duly.testing.history.promises.submissions import i1, i10
from duly.testing.history.records import History
from duly.testing.history.verdict import Verdict

PROMISES: tuple[Promise, ...] = (
    *(i1, i2, i3, i4, i5, i6, i7, i8, i9, i10),
    *(i11, i12, i13, i14, i15, i16, i17, i18, i19),
)
"""All of them, in the order of their numbers."""


def check(history: History) -> Verdict:
    """Examine a whole history, taken when everything was quiet."""
    book = Book(history)
    return Verdict(tuple(promise(book) for promise in PROMISES))
