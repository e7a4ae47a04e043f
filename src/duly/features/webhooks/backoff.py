"""When a message is tried again, and when no more."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from duly.features.webhooks.delivery_store import Claimed, Tried
from duly.features.webhooks.message import instant

_SECOND, _MINUTE, _HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
RETRIES = (
    *(5 * _SECOND, 5 * _MINUTE, 30 * _MINUTE, 2 * _HOUR, 5 * _HOUR),
    *(10 * _HOUR, 14 * _HOUR, 20 * _HOUR, 24 * _HOUR),
)
"""How long to wait after each try that failed; after the last of them a message has failed for good."""
LONGEST_PAUSE = _HOUR
"""What a receiver may ask for at most."""
_GONE = 410


class Answer(NamedTuple):
    """What came of a try."""

    status: int | None
    """As the receiver has it; None if there was no answer."""
    error: str | None
    """Why it did not arrive; None if it did."""
    retry_after: float | None
    """Seconds, if the receiver asks for a pause."""
    seconds: float
    asked: bool = True
    """Whether the receiver had anything to do with it."""


def hopeless(claimed: Claimed, error: str, at: datetime) -> Tried:
    """A message that can never be sent, for which its receiver is not to blame."""
    entry = {"at": instant(at), "status": None, "error": error, "seconds": 0.0}
    return Tried(claimed, "failed", None, entry, asked=False)


def unsent(error: str) -> Answer:
    """No answer, as nothing was sent."""
    return Answer(None, error, None, 0.0)


def broken_off(claimed: Claimed, error: BaseException, at: datetime) -> Tried:
    """A try that ended in an error of ours: it has failed like any other."""
    return judged(claimed, unsent(f"not sent: {type(error).__name__}"), at)


def judged(claimed: Claimed, answer: Answer, at: datetime) -> Tried:
    """What a try means for its message."""
    entry = {
        "at": instant(at),
        "status": answer.status,
        "error": answer.error,
        "seconds": round(answer.seconds, 3),
    }
    if answer.error is None:
        return Tried(claimed, "delivered", None, entry)
    if answer.status == _GONE or claimed.tries >= len(RETRIES):
        gone = answer.status == _GONE
        return Tried(claimed, "failed", None, entry, gone=gone, asked=answer.asked)
    # Made small before it is a time: a receiver may ask for more than there is.
    pause = timedelta(seconds=min(answer.retry_after or 0, LONGEST_PAUSE.total_seconds()))
    wait = max(RETRIES[claimed.tries], pause)
    return Tried(claimed, "pending", wait, entry, asked=answer.asked)
