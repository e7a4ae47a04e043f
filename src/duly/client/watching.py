"""Watching a job: its status, until it has ended, and its events."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

import httpx

from duly.client.responses import JobStatus, RemoteEvent, page_of
from duly.client.retries import RequestPolicy, parse, send, send_once
from duly.client.transport import Emit, OpenStream, Operation, ReadChunk, RequestSpec, Sleep
from duly.core.errors import WaitTimeout

_POLL_SECONDS = 25
"""How long a poll waits for a change: less than proxies allow a response to take."""
_STREAM_TIMEOUT = 45.0
"""The silence after which a stream counts as dead: three heartbeats."""
_STREAM = "text/event-stream"
# Only these end a line: JSON may contain what Unicode calls a line separator.
_LINE_END = re.compile(rb"\r\n|\n|\r")
MAX_SSE_LINE_BYTES = 2**24


class SseDecoder:
    """Decodes chunks of a stream into the data of whole events; names, ids and comments are ignored."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the data of the events that end in this chunk."""
        text = self._rest + chunk
        if len(text) > MAX_SSE_LINE_BYTES:
            raise ValueError("line too long")
        # A carriage return at the end may be the first half of a line end.
        split_line_end = text.endswith(b"\r")
        *lines, rest = _LINE_END.split(text[:-1] if split_line_end else text)
        self._rest = rest + b"\r" if split_line_end else rest
        return [data for line in lines if (data := self._take(line)) is not None]

    def _take(self, line: bytes) -> bytes | None:
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
        if line or not self._data:
            return None
        data = b"\n".join(self._data)
        self._data.clear()
        return data


@dataclass(frozen=True, slots=True)
class TaggedStatus:
    """The status of a job with its ETag."""

    job: JobStatus
    etag: str | None

    @classmethod
    def parse(cls, response: httpx.Response) -> TaggedStatus:
        """Return the status of a response."""
        return cls(parse(JobStatus, response), response.headers.get("etag"))


@dataclass(slots=True)
class EventProgress:
    """How far the events of a job were read."""

    last_seq: int
    ended: bool = False
    streams: bool = True
    """Whether the service has streams."""

    def emit_new(self, events: Iterable[RemoteEvent], *, gaps: bool = False) -> Operation[bool]:
        """Emit new events in order; return False if some are missing in between.

        A page may have gaps, since old events are deleted; a stream with a gap is not trusted.
        """
        for event in events:
            if event.event_seq > self.last_seq + 1 and not gaps:
                return False
            if event.event_seq > self.last_seq:
                self.last_seq, self.ended = event.event_seq, event.last
                yield Emit(event)
        return True


class WatchOperations:
    """The long operations on one job. They survive an outage as long as the deadline allows."""

    def __init__(self, policy: RequestPolicy) -> None:
        self.policy = policy
        self._persistent = replace(policy, retries=math.inf)

    def status(self, job_id: UUID) -> Operation[JobStatus]:
        """Return the status of a job."""
        return (yield from self._status(job_id, self.policy)).job

    def wait(self, job_id: UUID, timeout: timedelta | float | None) -> Operation[JobStatus]:
        """Return a job when it has ended; emit its first status and every change."""
        current = yield from self._status(job_id, self.policy)
        yield Emit(current.job)
        end = time.monotonic() + _seconds(timeout)
        while not current.job.terminal:
            left = end - time.monotonic()
            if left <= 0:
                raise WaitTimeout(f"{job_id} is still active after {timeout}", fix="wait again, or longer")
            before, current = current, (yield from self._poll(job_id, current, left))
            if current.job.stage != before.job.stage:
                yield Emit(current.job)
        return current.job

    def events(self, job_id: UUID, after: int) -> Operation[None]:
        """Emit every event once, in order, until the job has ended; by stream, else by pages and polls."""
        progress = EventProgress(after)
        while not progress.ended:
            before = progress.last_seq
            if progress.streams:
                yield from self._stream(job_id, progress)
            if progress.last_seq == before:
                yield from self._read_pages(job_id, progress)

    def _status(self, job_id: UUID, policy: RequestPolicy) -> Operation[TaggedStatus]:
        return TaggedStatus.parse((yield from send(RequestSpec("GET", f"/v1/jobs/{job_id}"), policy)))

    def _poll(self, job_id: UUID, current: TaggedStatus, left: float) -> Operation[TaggedStatus]:
        """Return the status when it has changed, or after a while."""
        wait = int(min(_POLL_SECONDS, left))
        if not wait:
            yield Sleep(left)
            return (yield from self._status(job_id, self._within(left)))
        headers = {"prefer": f"wait={wait}", **({"if-none-match": current.etag} if current.etag else {})}
        request = RequestSpec("GET", f"/v1/jobs/{job_id}", headers=headers, extra_timeout=wait)
        response = yield from send_once(request, self.policy.timeout)
        if not isinstance(response, httpx.Response):
            # A proxy that cuts polls may pass a plain request, whose error is the real one.
            latest = yield from self._status(job_id, self._within(left))
        else:
            latest = current if response.status_code == 304 else TaggedStatus.parse(response)
            if "preference-applied" in response.headers:
                return latest
        if latest.job.stage == current.job.stage:
            yield Sleep(min(1.0, left))
        return latest

    def _within(self, left: float) -> RequestPolicy:
        """Return a policy whose retries do not take much longer than the rest of a wait."""
        return replace(self._persistent, deadline=min(self.policy.deadline, max(left, self.policy.timeout)))

    def _stream(self, job_id: UUID, progress: EventProgress) -> Operation[None]:
        """Emit the events of one connection, however it ends. A plain request finds out what is wrong."""
        headers = {"accept": _STREAM, "accept-encoding": "identity", "last-event-id": str(progress.last_seq)}
        decoder = SseDecoder()
        try:
            head: httpx.Response = yield OpenStream(
                RequestSpec("GET", f"/v1/jobs/{job_id}/events", headers=headers), _STREAM_TIMEOUT
            )
            if head.status_code != 200 or not head.headers.get("content-type", "").startswith(_STREAM):
                progress.streams = head.status_code != 200
                return
            while not progress.ended and (chunk := (yield ReadChunk())) is not None:
                events = [RemoteEvent.model_validate_json(data) for data in decoder.feed(chunk)]
                if not (yield from progress.emit_new(events)):
                    return
        except (httpx.RequestError, ValueError):
            return

    def _read_pages(self, job_id: UUID, progress: EventProgress) -> Operation[None]:
        # The status comes before the pages: if it is final, the pages have all events.
        current = yield from self._status(job_id, self._persistent)
        before = progress.last_seq
        while not progress.ended:
            request = RequestSpec("GET", f"/v1/jobs/{job_id}/events", {"after": progress.last_seq})
            response = yield from send(request, self._persistent)
            last_seq = progress.last_seq
            page = parse(page_of("events", RemoteEvent), response)
            yield from progress.emit_new(page.events, gaps=True)
            if progress.last_seq == last_seq:
                break
        if current.job.terminal:
            progress.ended = True
        elif progress.last_seq == before:
            yield from self._poll(job_id, current, math.inf)


def _seconds(timeout: timedelta | float | None) -> float:
    if timeout is None:
        return math.inf
    return timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
