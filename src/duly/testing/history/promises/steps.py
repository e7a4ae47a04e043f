"""The events of each job: how they end, how they are numbered, and where they lead."""

from __future__ import annotations

from duly.model.events import TERMINAL_EVENT, EventType
from duly.model.states import HELD, TERMINAL, TRANSITIONS, Status, Trigger
from duly.testing.history.book import Book, Findings, Row, Story, promise

ENDS = frozenset(event.value for event in TERMINAL_EVENT.values())
_END_OF = {status.value: event.value for status, event in TERMINAL_EVENT.items()}
_TRIGGERS: dict[EventType, tuple[Trigger, ...]] = {
    EventType.QUEUED: (Trigger.ENQUEUE,),
    EventType.STARTED: (Trigger.CLAIM,),
    EventType.PARTIAL: (Trigger.CHUNK,),
    EventType.RETRIED: (Trigger.RETRY,),
    EventType.SNOOZED: (Trigger.GIVE_BACK,),
    EventType.LEASE_LOST: (Trigger.LOSE_LEASE,),
    EventType.COMPLETED: (Trigger.FINISH,),
    EventType.FAILED: (Trigger.FAIL, Trigger.RECONCILE),
    EventType.CANCELED: (Trigger.CANCEL,),
}
_STAYS: dict[EventType, frozenset[Status]] = {
    EventType.PROGRESSED: HELD,
    EventType.CANCEL_REQUESTED: HELD,
    EventType.REPLAYED: frozenset({Status.QUEUED}),
    EventType.RECONCILED: frozenset(Status) - TERMINAL,
}
_HERALDS = frozenset({EventType.LEASE_LOST, EventType.DEADLETTERED, EventType.RECONCILED})
"""Events that a decision writes before the one that ends the job, already with its last status."""


def _legal() -> frozenset[tuple[str | None, str, str]]:
    moves = {
        (before, event, after)
        for event, triggers in _TRIGGERS.items()
        for (before, trigger), after in TRANSITIONS.items()
        if trigger in triggers
    }
    stays = {(status, event, status) for event, statuses in _STAYS.items() for status in statuses}
    return frozenset((b and b.value, e.value, a.value) for b, e, a in moves | stays)


LEGAL = _legal()
"""(status before, event, status after): the table of transitions, told by events."""


@promise
def i2(book: Book, found: Findings) -> None:
    """After quiet: exactly one terminal event per job, the last, equal to its status."""
    for story in book.stories.values():
        found.facts += 1
        if story.job is None:
            found.report("events of a job that does not exist", story.key, events=_types(story))
        elif story.job["status"] in _END_OF:
            _check_end(found, story, story.job)
        elif not book.waits_rightly(story.job):
            found.report(f"it is still {story.job['status']}", story.key, events=_types(story))
        elif any(event["event_type"] in ENDS for event in story.events):
            found.report("it has ended by its events, and waits by its row", story.key, events=_types(story))


def _check_end(found: Findings, story: Story, job: Row) -> None:
    ends = [event["event_type"] for event in story.events if event["event_type"] in ENDS]
    if ends != [_END_OF[job["status"]]]:
        found.report(
            f"it is {job['status']}, and its terminal events are {ends}", story.key, events=_types(story)
        )
    elif story.events[-1]["event_type"] != ends[0]:
        found.report(f"{ends[0]} is not its last event", story.key, events=_types(story))


def _types(story: Story) -> list[str]:
    return [event["event_type"] for event in story.events]


@promise
def i3(book: Book, found: Findings) -> None:
    """event_seq is 1..n without gaps, and events become visible in that order."""
    for story in book.stories.values():
        numbers = [event["event_seq"] for event in story.events]
        found.facts += len(numbers)
        if numbers != list(range(1, len(numbers) + 1)):
            found.report("the numbers of its events have a gap, or are double", story.key, numbers=numbers)
        elif story.job is not None and story.job["event_seq"] != len(numbers):
            found.report(
                "the row counts other events than there are",
                story.key,
                row=story.job["event_seq"],
                events=len(numbers),
            )
    last: dict[tuple[str, object], int] = {}
    for sight in book.history.sights:
        found.facts += 1
        key, looked = (sight.org_id, sight.job_id), (sight.observer, (sight.org_id, sight.job_id))
        if sight.events_seen != sight.event_seq:
            found.report(
                "a look saw a row and other events than the row counts",
                key,
                observer=sight.observer,
                row=sight.event_seq,
                events=sight.events_seen,
            )
        if sight.event_seq < last.get(looked, 0):
            found.report("a later look saw fewer events", key, observer=sight.observer, seq=sight.event_seq)
        last[looked] = sight.event_seq


@promise
def i4(book: Book, found: Findings) -> None:
    """Each step from status to status is in the table of transitions."""
    for story in book.stories.values():
        _walk(found, story)
    for sight in book.history.sights:
        found.facts += 1
        story = book.story((sight.org_id, sight.job_id))
        if 0 < sight.event_seq <= len(story.events):
            event = story.events[sight.event_seq - 1]
            if event["status"] != sight.status:
                found.report(
                    f"a look saw it {sight.status} at event {sight.event_seq}, which says {event['status']}",
                    story.key,
                    observer=sight.observer,
                )


def _walk(found: Findings, story: Story) -> None:
    before: str | None = None
    for event in story.events:
        found.facts += 1
        event_type, after = event["event_type"], event["status"]
        if event_type in _HERALDS and after in _END_OF:
            continue
        if (before, event_type, after) not in LEGAL:
            found.report(
                f"{event_type} led from {before} to {after}",
                story.key,
                event_seq=event["event_seq"],
                attempt=event["attempt"],
                actor=event["actor_id"],
            )
        before = after
    if story.job is not None and story.events and story.events[-1]["status"] != story.job["status"]:
        found.report(
            f"its last event says {story.events[-1]['status']}, its row {story.job['status']}", story.key
        )
