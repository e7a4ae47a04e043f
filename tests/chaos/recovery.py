"""Recovery times: from the end of a fault to the next finished job, and to the last takeover."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from datetime import UTC, datetime
from typing import Any, NamedTuple

from duly.testing.history.records import History

Row = dict[str, Any]


class Times(NamedTuple):
    """Seconds, of all faults of a kind."""

    kind: str
    faults: int
    until_next: list[float]
    taken_over: list[float]


def recoveries(history: History, faults: list[Row]) -> list[Times]:
    """Return the times by kind of fault."""
    done = sorted(e["occurred_at"].timestamp() for e in history.events if e["event_type"] == "job.completed")
    by_job: dict[Any, list[Row]] = defaultdict(list)
    for event in history.events:
        by_job[event["job_id"]].append(event)
    found: dict[str, Times] = {}
    for fault in faults:
        times = found.setdefault(fault["kind"], Times(fault["kind"], 0, [], []))
        after = bisect_right(done, fault["over_at"])
        if after < len(done):
            times.until_next.append(done[after] - fault["over_at"])
        if fault["kind"] in ("worker_kill", "worker_stop"):
            times.taken_over.extend(_taken_over(history, by_job, fault))
        found[fault["kind"]] = times._replace(faults=times.faults + 1)
    return sorted(found.values())


def _taken_over(history: History, by_job: dict[Any, list[Row]], fault: Row) -> list[float]:
    """Return for each job of the victim how long it took until it was back in the queue."""
    struck = datetime.fromtimestamp(fault.get("stopped_at", fault["over_at"]), UTC)
    victims = {str(w["worker_id"]) for w in history.workers if w["pid"] == fault["pid"]}
    found = []
    for events in by_job.values():
        events.sort(key=lambda event: event["event_seq"])
        before = [e for e in events if e["occurred_at"] <= struck]
        started = [e for e in before if e["event_type"] == "job.started"]
        if (
            not started
            or started[-1]["actor_id"] not in victims
            or before[-1]["status"] not in ("running", "partial")
        ):
            continue
        after = events[len(before) :]
        lost = next((e for e in after if e["event_type"] == "job.lease_lost"), None)
        if lost is not None and lost["attempt"] == started[-1]["attempt"]:
            found.append((lost["occurred_at"] - struck).total_seconds())
    return found


def percentile(values: list[float], share: float) -> str:
    """Return a percentile as text; a dash without values."""
    if not values:
        return "-"
    ordered = sorted(values)
    return f"{ordered[min(len(ordered) - 1, int(share * len(ordered)))]:.2f} s"
