"""Attempts: whose writes count, how many there may be, when they start, and when they must not."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta

from duly.model.events import EventType
from duly.testing.history.book import Book, Findings, Key, Row, Story, promise

_STARTED, _SNOOZED = EventType.STARTED.value, EventType.SNOOZED.value
_BY_ITS_WORKER = frozenset(
    event.value
    for event in (
        EventType.PROGRESSED,
        EventType.PARTIAL,
        EventType.RETRIED,
        EventType.SNOOZED,
        EventType.COMPLETED,
        EventType.DEADLETTERED,
        EventType.FAILED,
    )
)
"""What a worker writes only about jobs it holds."""


@promise
def i6(book: Book, found: Findings) -> None:
    """Attempts strictly increase, and no write of an older attempt is accepted."""
    for story in book.stories.values():
        _fenced(found, story)
    seen: dict[tuple[str, Key], int] = {}
    for sight in book.history.sights:
        found.facts += 1
        key = (sight.org_id, sight.job_id)
        if sight.attempt < seen.get((sight.observer, key), 0):
            found.report("a later look saw an older attempt", key, observer=sight.observer)
        seen[sight.observer, key] = sight.attempt
    for effect in book.history.effects:
        story = book.story((effect.org_id, effect.job_id))
        if effect.kind == "transaction" and story.job is not None and story.status == "completed":
            found.facts += 1
            if effect.attempt != story.job["fence"]:
                last = story.job["fence"]
                found.report(
                    f"attempt {effect.attempt} committed its effect, and attempt {last} was the last",
                    story.key,
                )


def _fenced(found: Findings, story: Story) -> None:
    fence, worker = 0, None
    for event in story.events:
        found.facts += 1
        event_type, attempt = event["event_type"], event["attempt"]
        if event_type == _STARTED:
            if attempt != fence + 1:
                found.report(
                    f"attempt {attempt} started after attempt {fence}",
                    story.key,
                    event_seq=event["event_seq"],
                )
            fence, worker = attempt, event["actor_id"]
        elif attempt != fence:
            found.report(
                f"{event_type} of attempt {attempt} was accepted in attempt {fence}",
                story.key,
                event_seq=event["event_seq"],
                actor=event["actor_id"],
            )
        elif event_type in _BY_ITS_WORKER and event["actor_type"] == "worker" and event["actor_id"] != worker:
            found.report(
                f"{event_type} was written by a worker that did not hold attempt {fence}",
                story.key,
                event_seq=event["event_seq"],
                actor=event["actor_id"],
                holder=worker,
            )
    if story.job is not None and story.job["fence"] != fence:
        found.report(f"its row is at attempt {story.job['fence']}, its events at {fence}", story.key)


@promise
def i8(book: Book, found: Findings) -> None:
    """Attempts never exceed the maximum, and crashed ones count.

    An attempt that was given back (a snooze, a drain) does not count. A cancel may meet one that is being
    given back: then the row counts one less than the events tell.
    """
    for story, job in book.jobs:
        started = given_back = 0
        for event in story.events:
            given_back += event["event_type"] == _SNOOZED
            if event["event_type"] == _STARTED:
                found.facts += 1
                started += 1
                if started - given_back > job["max_attempts"]:
                    found.report(
                        f"attempt {started - given_back} of {job['max_attempts']} started",
                        story.key,
                        event_seq=event["event_seq"],
                    )
        spent, may_lack = started - given_back, job["status"] == "canceled"
        if started and not spent - may_lack <= job["attempt"] <= spent:
            found.report(f"its row counts {job['attempt']} attempts, its events {spent}", story.key)


@promise
def i9(book: Book, found: Findings) -> None:
    """Nothing starts before its run_at by the database's clock."""
    slack = timedelta(seconds=book.history.open_seconds)
    for story, job in book.jobs:
        run_at: datetime = job["scheduled_for"] or job["created_at"]
        for event in story.events:
            if event["event_type"] == _STARTED:
                found.facts += 1
                if event["occurred_at"] + slack < run_at:
                    found.report(
                        f"it started at {event['occurred_at']}, and was to wait until {run_at}",
                        story.key,
                        event_seq=event["event_seq"],
                    )
            else:
                run_at = _told(event) or run_at


def _told(event: Row) -> datetime | None:
    said = (event["payload"] or {}).get("run_at")
    return datetime.fromisoformat(said) if said else None


@promise
def i18(book: Book, found: Findings) -> None:
    """What was canceled while it was queued never starts; nor does what was asked to stop start again."""
    worked: dict[Key, list[int]] = defaultdict(list)
    for effect in book.history.effects:
        if effect.kind != "bridge":
            worked[effect.org_id, effect.job_id].append(effect.attempt)
    for story in book.stories.values():
        _stays_canceled(found, story, worked.get(story.key, []))
    for asked in book.history.cancellations:
        if asked.answer == "ok" and asked.told == "canceled":
            found.facts += 1
            story = book.story((asked.org_id, asked.job_id))
            if story.status != "canceled":
                found.report(
                    f"client {asked.client} was told that it is canceled, and it is {story.status}", story.key
                )


def _stays_canceled(found: Findings, story: Story, worked: list[int]) -> None:
    before, stopped = "", ""
    for event in story.events:
        event_type = event["event_type"]
        if event_type == EventType.CANCEL_REQUESTED or (
            event_type == EventType.CANCELED and before == "queued"
        ):
            found.facts += 1
            stopped = event_type
            late = [attempt for attempt in worked if attempt > event["attempt"]]
            if late:
                found.report(f"it worked after {stopped}", story.key, attempts=late)
        elif event_type == _STARTED and stopped:
            found.report(
                f"attempt {event['attempt']} started after {stopped}",
                story.key,
                event_seq=event["event_seq"],
            )
        before = event["status"]
