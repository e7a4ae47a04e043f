"""Promises about progress and results."""

from __future__ import annotations

from collections import defaultdict

from duly.core.states import EventType
from duly.testing.history.checker import HistoryIndex, JobHistory, Key, PromiseFindings, Row, key_of, promise

_PARTIAL, _COMPLETED = EventType.PARTIAL.value, EventType.COMPLETED.value
_TOLERANCE = 0.001


@promise
def i5(index: HistoryIndex, findings: PromiseFindings) -> None:
    """Progress never falls, each change has its event, and completed means 100."""
    percents_by_job: dict[Key, list[float]] = {}
    for job in index.jobs.values():
        percents_by_job[job.key] = percents = _percents(findings, job)
        if job.row is None:
            continue
        findings.facts += 1
        percent = job.row["progress_percent"]
        if job.status == "completed" and percent != 100:
            findings.report(f"it is completed at {percent} percent", job.key)
        if percents and abs(percent - percents[-1]) > _TOLERANCE:
            findings.report(f"its row has {percent} percent, its events {percents[-1]}", job.key)
    highest: dict[tuple[str, Key], float] = {}
    for observation in index.history.observations:
        findings.facts += 1
        key, percent = (observation.org_id, observation.job_id), observation.progress_percent
        if percent < highest.get((observation.observer, key), 0.0) - _TOLERANCE:
            findings.report(
                f"a later observation shows only {percent} percent", key, observer=observation.observer
            )
        highest[observation.observer, key] = percent
        at_event = percents_by_job.get(key, [])[observation.event_seq - 1 : observation.event_seq]
        if at_event and abs(at_event[0] - percent) > _TOLERANCE:
            findings.report(
                f"an observation shows {percent} percent at event {observation.event_seq},"
                f" which has {at_event[0]}",
                key,
                observer=observation.observer,
            )


def _percents(findings: PromiseFindings, job: JobHistory) -> list[float]:
    """Return the progress after each event."""
    percent, after = 0.0, []
    for event in job.events:
        new = (event["payload"] or {}).get("progress_percent")
        if new is not None:
            findings.facts += 1
            if new < percent - _TOLERANCE:
                findings.report(
                    f"its progress fell from {percent} to {new} percent",
                    job.key,
                    event_seq=event["event_seq"],
                )
            percent = float(new)
        elif event["event_type"] == _COMPLETED:
            percent = 100.0
        after.append(percent)
    return after


@promise
def i12(index: HistoryIndex, findings: PromiseFindings) -> None:
    """One final snapshot if and only if completed; result_seq has no gaps; partial results stay."""
    results: dict[Key, list[Row]] = defaultdict(list)
    for snapshot in index.history.results:
        results[key_of(snapshot)].append(snapshot)
    for key in results.keys() - index.jobs.keys():
        findings.report("results of a job that does not exist", key)
    for job, row in index.stored_jobs:
        snapshots = results.get(job.key, [])
        events = [e["payload"]["result_seq"] for e in job.events if e["event_type"] == _PARTIAL]
        if snapshots or events or row["status"] == "completed":
            findings.facts += 1
            _check_results(findings, job, row, snapshots, events)


def _check_results(
    findings: PromiseFindings, job: JobHistory, row: Row, snapshots: list[Row], events: list[int]
) -> None:
    finals = [one["result_seq"] for one in snapshots if one["result_kind"] == "final"]
    partials = sorted(one["result_seq"] for one in snapshots if one["result_kind"] == "partial")
    if len(finals) != (row["status"] == "completed"):
        findings.report(f"it is {row['status']}, but has {len(finals)} final snapshots", job.key, seq=finals)
    if partials != sorted(events) or len(partials) != row["partial_count"]:
        findings.report(
            f"its row counts {row['partial_count']} partial results, but {len(partials)} can be read",
            job.key,
            events=events,
            rows=partials,
        )
    elif partials + finals != list(range(1, row["result_seq"] + 1)):
        findings.report(
            "the numbers of its results have gaps or duplicates",
            job.key,
            numbers=partials + finals,
            row=row["result_seq"],
        )
