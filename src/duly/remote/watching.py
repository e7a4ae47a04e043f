"""Watching a job: as it is now, until it has ended, and event by event."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

import httpx

from duly.model.errors import WaitTimeout
from duly.remote.answers import Event, EventPage, JobStatus
from duly.remote.asking import Patience, answered, once, read
from duly.remote.sse import Decoder
from duly.remote.steps import Asked, Flow, Next, Open, Pause, Tell

_POLL = 25
"""Seconds that a poll waits for news: less than proxies allow an answer to take."""
_STREAM_QUIET = 45.0
"""Seconds of silence after which a stream is given up: three signs of life."""
_STREAM = "text/event-stream"


@dataclass(frozen=True, slots=True)
class Seen:
    """A job as it was seen, and the tag of that sight."""

    job: JobStatus
    tag: str | None

    @classmethod
    def of(cls, answer: httpx.Response) -> Seen:
        """As it was answered."""
        return cls(read(JobStatus, answer), answer.headers.get("etag"))


@dataclass(slots=True)
class Reading:
    """Somebody who has read the events of a job up to a number."""

    known: int
    over: bool = False
    streams: bool = True
    """Whether the service has streams at all."""

    def take(self, events: Iterable[Event], *, gaps: bool = False) -> Flow[bool]:
        """Tell those that are new, in order; False if some are missing in between.

        A page may have gaps, for old events are not kept; a stream that has one is not believed.
        """
        for event in events:
            if event.event_seq > self.known + 1 and not gaps:
                return False
            if event.event_seq > self.known:
                self.known, self.over = event.event_seq, event.last
                yield Tell(event)
        return True


class Watching:
    """The flows about one job that take their time. An outage is survived as long as the deadline allows."""

    def __init__(self, patience: Patience) -> None:
        self.patience = patience
        self._stubborn = replace(patience, retries=math.inf)

    def status(self, job_id: UUID) -> Flow[JobStatus]:
        """The job as it is now."""
        return (yield from self._look(job_id, self.patience)).job

    def wait(self, job_id: UUID, timeout: timedelta | float | None) -> Flow[JobStatus]:
        """The job when it has ended; tells every change on the way, and the first sight."""
        seen = yield from self._look(job_id, self.patience)
        yield Tell(seen.job)
        end = time.monotonic() + _seconds(timeout)
        while not seen.job.terminal:
            left = end - time.monotonic()
            if left <= 0:
                raise WaitTimeout(f"{job_id} is still active after {timeout}", fix="wait again, or longer")
            last, seen = seen, (yield from self._poll(job_id, seen, left))
            if seen.job.stage != last.job.stage:
                yield Tell(seen.job)
        return seen.job

    def events(self, job_id: UUID, after: int) -> Flow[None]:
        """Tells every event once, in order, until the job has ended; by stream, else by pages and polls."""
        reading = Reading(after)
        while not reading.over:
            before = reading.known
            if reading.streams:
                yield from self._stream(job_id, reading)
            if reading.known == before:
                yield from self._read_plainly(job_id, reading)

    def _look(self, job_id: UUID, patience: Patience) -> Flow[Seen]:
        return Seen.of((yield from answered(Asked("GET", f"/v1/jobs/{job_id}"), patience)))

    def _poll(self, job_id: UUID, seen: Seen, left: float) -> Flow[Seen]:
        """The job when it has changed, or after a while."""
        wait = int(min(_POLL, left))
        if not wait:
            yield Pause(left)
            return (yield from self._look(job_id, self._within(left)))
        headers = {"prefer": f"wait={wait}", **({"if-none-match": seen.tag} if seen.tag else {})}
        asked = Asked("GET", f"/v1/jobs/{job_id}", headers=headers, quiet=wait)
        got = yield from once(asked, self.patience.timeout)
        if not isinstance(got, httpx.Response):
            # Whoever cuts a poll may let a plain look pass; that one says what is really wrong.
            now = yield from self._look(job_id, self._within(left))
        else:
            now = seen if got.status_code == 304 else Seen.of(got)
            if "preference-applied" in got.headers:
                return now
        if now.job.stage == seen.job.stage:
            yield Pause(min(1.0, left))
        return now

    def _within(self, left: float) -> Patience:
        """Who waits for so long is not held up for much longer by an outage."""
        return replace(self._stubborn, deadline=min(self.patience.deadline, max(left, self.patience.timeout)))

    def _stream(self, job_id: UUID, reading: Reading) -> Flow[None]:
        """What comes by one connection, however it ends. What is wrong is found out by asking plainly."""
        headers = {"accept": _STREAM, "accept-encoding": "identity", "last-event-id": str(reading.known)}
        decoder = Decoder()
        try:
            head: httpx.Response = yield Open(
                Asked("GET", f"/v1/jobs/{job_id}/events", headers=headers), _STREAM_QUIET
            )
            if head.status_code != 200 or not head.headers.get("content-type", "").startswith(_STREAM):
                reading.streams = head.status_code != 200
                return
            while not reading.over and (piece := (yield Next())) is not None:
                events = [Event.model_validate_json(data) for data in decoder.feed(piece)]
                if not (yield from reading.take(events)):
                    return
        except (httpx.RequestError, ValueError):
            return

    def _read_plainly(self, job_id: UUID, reading: Reading) -> Flow[None]:
        # A look that finds the end comes before the pages, so that no event is left behind.
        seen = yield from self._look(job_id, self._stubborn)
        before = reading.known
        while not reading.over:
            asked = Asked("GET", f"/v1/jobs/{job_id}/events", {"after": reading.known})
            page = read(EventPage, (yield from answered(asked, self._stubborn)))
            last = reading.known
            yield from reading.take(page.events, gaps=True)
            if reading.known == last:
                break
        if seen.job.terminal:
            reading.over = True
        elif reading.known == before:
            yield from self._poll(job_id, seen, math.inf)


def _seconds(timeout: timedelta | float | None) -> float:
    if timeout is None:
        return math.inf
    return timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
