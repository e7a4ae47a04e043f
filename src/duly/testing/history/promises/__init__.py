"""The promises I1 to I19, each a function of a history; `check` examines all of them."""

from __future__ import annotations

from duly.testing.history.checker import CheckResult, HistoryIndex, Promise
from duly.testing.history.promises.attempts import i6, i8, i9, i18
from duly.testing.history.promises.effects import i7, i11
from duly.testing.history.promises.events import i2, i3, i4
from duly.testing.history.promises.immutability import i19
from duly.testing.history.promises.leases import i17
from duly.testing.history.promises.readers import i14, i15, i16
from duly.testing.history.promises.results import i5, i12
from duly.testing.history.promises.schedules import i13
from duly.testing.history.promises.submissions import i1, i10
from duly.testing.history.records import History

PROMISES: tuple[Promise, ...] = (
    *(i1, i2, i3, i4, i5, i6, i7, i8, i9, i10),
    *(i11, i12, i13, i14, i15, i16, i17, i18, i19),
)
"""All promises, in the order of their numbers."""


def check(history: History) -> CheckResult:
    """Check a whole history, exported when the run was quiet."""
    index = HistoryIndex(history)
    return CheckResult(tuple(promise(index) for promise in PROMISES))
