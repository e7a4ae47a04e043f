"""`ctx.log`: a logger whose lines carry the ids of the job, and are kept with it, so many of each attempt."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any, Protocol

from duly.model.error_report import describe
from duly.model.outcome import Ending
from duly.observe.fields import ids_of, kept, safe
from duly.store.claims import ClaimedJob
from duly.store.job_logs import REFUSED, Line

FIRST, LAST = 200, 50
"""How many lines of an attempt are kept: the first, as they come, and the last, when it has ended."""
OFF = 2**31 - 1
"""No line weighs so much."""
_WEIGHTS = ((50, "critical"), (40, "error"), (30, "warning"), (20, "info"))


class Lines(Protocol):
    """Where the lines go. It never waits, and any thread may call it."""

    level: int
    """What weighs less is not kept."""

    def put(self, lines: Sequence[Line], *, last: bool = False) -> None:
        """Have them kept soon; the last ones of an attempt at once."""


class JobLog(logging.LoggerAdapter[logging.Logger]):
    """A logger whose lines carry the ids of the job; those that weigh enough are kept with it."""

    def __init__(self, job: ClaimedJob, lines: Lines) -> None:
        super().__init__(logging.getLogger(f"duly.job.{job.job_type}"), ids_of(job))
        self._job = job
        self._lines = lines
        self._count = 0
        self._last: deque[Line] = deque(maxlen=LAST)
        self._lock = threading.Lock()

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """With the ids of the job beside what the line says itself."""
        kwargs["extra"] = {**(kwargs.get("extra") or {}), **(self.extra or {})}
        return msg, kwargs

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Every other method comes here."""
        if level >= self._lines.level:
            self._keep(level, msg, args, kwargs)
        # The line is whose who called us.
        kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1
        super().log(level, msg, *args, **kwargs)

    def close(self) -> None:
        """The attempt has ended: what was held back follows, and how much of it is missing."""
        with self._lock:
            last, left_out = list(self._last), self._count - FIRST - len(self._last)
            self._last.clear()
            if left_out > 0:
                # In the place of the first that is missing.
                said = f"{left_out} lines are left out here"
                last.insert(0, self._line(FIRST + 1, logging.WARNING, said, {}))
        self._lines.put(last, last=True)

    def _keep(self, level: int, msg: object, args: tuple[object, ...], said: Mapping[str, Any]) -> None:
        text, fields = _text(msg, args), kept(said.get("extra") or {})
        if (error := _error(said.get("exc_info"))) is not None:
            info = describe(error, job_type=self._job.job_type)
            text = f"{text}\n{info.error_class}: {info.message}"
            fields |= {"error_code": info.code, "error_class": info.error_class}
        text = safe(text)
        with self._lock:
            self._count += 1
            line = self._line(self._count, level, text, fields)
            if self._count > FIRST:
                self._last.append(line)
            else:
                # Inside the lock, so that the lines of several threads come in the order of their numbers.
                self._lines.put([line])

    def _line(self, number: int, level: int, text: str, fields: dict[str, Any]) -> Line:
        job = self._job
        word = next((word for least, word in _WEIGHTS if level >= least), "debug")
        return Line(job.org_id, job.job_id, job.attempt, number, time.monotonic(), word, text, fields)


def refused(job: ClaimedJob, ending: Ending | None) -> Line:
    """What is kept of an attempt that ended after somebody else had ended it."""
    what = "lost" if ending is None else type(ending).__name__.lower()
    said = (
        f"attempt {job.attempt} came too late ({what}): it was over already, and nothing of this is written"
    )
    fields = {"status": "refused", "outcome": what}
    return Line(job.org_id, job.job_id, job.attempt, REFUSED, time.monotonic(), "warning", said, fields)


def _text(msg: object, args: tuple[object, ...]) -> str:
    """The message as logging makes it; one that cannot be made must not harm the job."""
    try:
        # A single mapping is what `%(name)s` is filled from.
        values = args[0] if len(args) == 1 and isinstance(args[0], Mapping) and args[0] else args
        return str(msg) % values if args else str(msg)
    except Exception as error:
        return f"a line that cannot be read: {type(error).__name__}"


def _error(given: Any) -> BaseException | None:
    found = sys.exc_info()[1] if given is True else given[1] if isinstance(given, tuple) else given
    return found if isinstance(found, BaseException) else None
