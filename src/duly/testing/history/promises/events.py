"""Promises about the events of a job: the terminal event, their numbers, and legal transitions."""

from __future__ import annotations

from duly.core.states import HELD, TERMINAL, TERMINAL_EVENT, TRANSITIONS, EventType, Status, Trigger
from duly.testing.history.checker import HistoryIndex, JobHistory, PromiseFindings, Row, promise

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
_BEFORE_END = frozenset({EventType.LEASE_LOST, EventType.DEADLETTERED, EventType.RECONCILED})
"""Events that a decision writes before the terminal one, already with the final status."""


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
"""(status before, event, status after): the table of transitions, expressed in events."""


@promise
def i2(index: HistoryIndex, findings: PromiseFindings) -> None:
    """When the run is quiet, each job has exactly one terminal event: the last, equal to its status."""
    for job in index.jobs.values():
        findings.facts += 1
        if job.row is None:
            findings.report("events of a job that does not exist", job.key, events=_types(job))
        elif job.row["status"] in _END_OF:
            _check_end(findings, job, job.row)
        elif not index.is_not_due(job.row):
            findings.report(f"it is still {job.row['status']}", job.key, events=_types(job))
        elif any(event["event_type"] in ENDS for event in job.events):
            findings.report("it ended by its events, but its row is queued", job.key, events=_types(job))


def _check_end(findings: PromiseFindings, job: JobHistory, row: Row) -> None:
    ends = [event["event_type"] for event in job.events if event["event_type"] in ENDS]
    if ends != [_END_OF[row["status"]]]:
        findings.report(
            f"it is {row['status']}, but its terminal events are {ends}", job.key, events=_types(job)
        )
    elif job.events[-1]["event_type"] != ends[0]:
        findings.report(f"{ends[0]} is not its last event", job.key, events=_types(job))


def _types(job: JobHistory) -> list[str]:
    return [event["event_type"] for event in job.events]


@promise
def i3(index: HistoryIndex, findings: PromiseFindings) -> None:
    """event_seq is 1..n without gaps, and events become visible in that order."""
    for job in index.jobs.values():
        numbers = [event["event_seq"] for event in job.events]
        findings.facts += len(numbers)
        if numbers != list(range(1, len(numbers) + 1)):
            findings.report("the numbers of its events have gaps or duplicates", job.key, numbers=numbers)
        elif job.row is not None and job.row["event_seq"] != len(numbers):
            findings.report(
                "its row counts another number of events than there are",
                job.key,
                row=job.row["event_seq"],
                events=len(numbers),
            )
    last: dict[tuple[str, object], int] = {}
    for observation in index.history.observations:
        findings.facts += 1
        key = (observation.org_id, observation.job_id)
        if observation.visible_events != observation.event_seq:
            findings.report(
                "an observation shows another number of events than its row counts",
                key,
                observer=observation.observer,
                row=observation.event_seq,
                events=observation.visible_events,
            )
        if observation.event_seq < last.get((observation.observer, key), 0):
            findings.report(
                "a later observation shows fewer events",
                key,
                observer=observation.observer,
                seq=observation.event_seq,
            )
        last[observation.observer, key] = observation.event_seq


@promise
def i4(index: HistoryIndex, findings: PromiseFindings) -> None:
    """Each change of status is in the table of transitions."""
    for job in index.jobs.values():
        _check_transitions(findings, job)
    for observation in index.history.observations:
        findings.facts += 1
        job = index.job((observation.org_id, observation.job_id))
        if 0 < observation.event_seq <= len(job.events):
            event = job.events[observation.event_seq - 1]
            if event["status"] != observation.status:
                findings.report(
                    f"an observation shows {observation.status} at event {observation.event_seq},"
                    f" which has {event['status']}",
                    job.key,
                    observer=observation.observer,
                )


def _check_transitions(findings: PromiseFindings, job: JobHistory) -> None:
    before: str | None = None
    for event in job.events:
        findings.facts += 1
        event_type, after = event["event_type"], event["status"]
        if event_type in _BEFORE_END and after in _END_OF:
            continue
        if (before, event_type, after) not in LEGAL:
            findings.report(
                f"{event_type} led from {before} to {after}",
                job.key,
                event_seq=event["event_seq"],
                attempt=event["attempt"],
                actor=event["actor_id"],
            )
        before = after
    if job.row is not None and job.events and job.events[-1]["status"] != job.row["status"]:
        findings.report(
            f"its last event has status {job.events[-1]['status']}, its row {job.row['status']}", job.key
        )
