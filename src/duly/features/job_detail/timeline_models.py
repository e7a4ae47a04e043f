"""What the picture of a job's life is made of. Places on it are fractions of the whole."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any


class WaitKind(StrEnum):
    """What a job waits for."""

    DELAYED = "delayed"
    """The time it was asked to begin."""
    WAITING = "waiting"
    """A worker."""
    BACKOFF = "backoff"
    """The time of its next try."""
    SNOOZED = "snoozed"
    """The time at which its handler wants to look again, or another worker."""


class MarkKind(StrEnum):
    """What was noticed at one moment."""

    REPLAYED = "replayed"
    CANCEL_REQUESTED = "cancel_requested"
    LEASE_LOST = "lease_lost"
    TAKEN_OVER = "taken_over"
    REFUSED = "refused"
    """What an attempt wrote after its lease was lost: nothing of it counts."""
    RECONCILED = "reconciled"
    DEAD = "dead"


RUNNING = "running"
"""How an attempt ended that has not ended; the others are named like the events that end them."""


@dataclass(frozen=True, slots=True)
class Part:
    """Something that lasted."""

    start: datetime
    end: datetime
    left: float = 0.0
    width: float = 0.0
    """Fractions of the whole."""

    @property
    def lasted(self) -> timedelta:
        """For how long."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Wait(Part):
    """A time in which nobody worked on it."""

    kind: WaitKind = WaitKind.WAITING
    open: bool = False
    """Whether it lasts still."""


@dataclass(frozen=True, slots=True)
class Chunks(Part):
    """Results that came in one after the other, up to the end of this part."""

    count: int = 1
    last_seq: int = 0


@dataclass(frozen=True, slots=True)
class Run(Part):
    """An attempt."""

    attempt: int = 0
    worker: str = ""
    ended: str = RUNNING
    detail: dict[str, Any] | None = None
    chunks: tuple[Chunks, ...] = ()
    ghost: Part | None = None
    """How long its worker went on after its lease was lost, if it wrote again and was refused."""

    @property
    def open(self) -> bool:
        """Whether it runs still."""
        return self.ended == RUNNING


@dataclass(frozen=True, slots=True)
class Mark:
    """Something at one moment."""

    kind: MarkKind
    moment: datetime
    detail: dict[str, Any]
    left: float = 0.0


@dataclass(frozen=True, slots=True)
class Row:
    """An attempt with the waits before it; without an attempt, waits that came to nothing, or last still."""

    waits: tuple[Wait, ...] = ()
    run: Run | None = None
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True)
class Waterfall:
    """All of it."""

    start: datetime
    end: datetime
    """Of a living job a little later than now, so that it does not change with every look."""
    rows: tuple[Row, ...]
    cuts: tuple[float, ...] = ()
    """Where waits were cut short."""
    shortened: bool = False
    """Whether earlier attempts are left out."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A write that was refused, because the attempt was no longer its writer's."""

    attempt: int
    at: datetime
    what: str = ""
