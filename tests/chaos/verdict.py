"""The result of a run as text; and, If a promise is broken, its history."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from duly.testing.history.checker import CheckResult
from duly.testing.history.records import History, PromiseViolation
from tests.chaos.client_log import lines
from tests.chaos.plan import CLIENTS
from tests.chaos.recovery import percentile, recoveries
from tests.chaos.run import Report

MAX_VIOLATIONS = 5
_AROUND = timedelta(seconds=10)


@dataclass
class Judgement:
    """The verdict of the checker, and further checks."""

    history: History
    verdict: CheckResult
    report: Report
    home: Path

    @property
    def faults(self) -> list[dict[str, Any]]:
        return list(lines(self.home / "faults.jsonl"))

    @property
    def complaints(self) -> list[str]:
        """Return everything that makes the run a failure."""
        report = self.report
        found = [f"{promise} does not hold" for promise in sorted(self.verdict.broken, key=_number)]
        found += [f"{promise}: no evidence" for promise in sorted(self.verdict.without_evidence, key=_number)]
        if report.unfinished:
            found.append(f"not quiet: {report.unfinished}")
        found += [f"{name} left with code {code} at the end" for name, code in report.drained.items() if code]
        if report.left_running:
            found.append(f"processes are left: {report.left_running}")
        return found

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield self.verdict.table()
        yield ""
        yield from self._operations()
        yield from self._outcomes()
        yield ""
        yield from self._recoveries()
        yield ""
        yield f"lost jobs        {self._lost()}"
        yield f"doubled effects  {self._doubled()}"
        yield f"quiet after      {self.report.quiet_after:.1f} s"
        for kind, why in self.report.left_out.items():
            yield f"left out         {kind}: {why}"
        for departure in self.report.departures:
            yield f"by itself        {departure}"
        yield ""
        complaints = self.complaints
        yield "\n".join(complaints) if complaints else "every promise holds, with evidence"

    def _operations(self) -> Iterator[str]:
        for name in ("submissions", "cancellations"):
            answers = Counter(submission.answer for submission in getattr(self.history, name))
            labels = {"ok": "acknowledged", "fail": "failed", "unknown": "unknown"}
            counts = ", ".join(f"{answers[answer]:,} {word}" for answer, word in labels.items())
            yield f"{name:<16} {answers.total():,}: {counts}"
        read = sum(len(stream.events) for stream in self.history.streams)
        ended = sum(stream.to_the_end for stream in self.history.streams)
        yield f"streams          {len(self.history.streams):,}, {ended:,} to the end, {read:,} events"
        fed = sum(len(feed.events) for feed in self.history.feeds)
        yield f"feeds            {len(self.history.feeds)}, {fed:,} events"
        yield f"observations     {len(self.history.observations):,}, {len(self.history.probes):,} probes"

    def _outcomes(self) -> Iterator[str]:
        outcomes = Counter(job["outcome"] for job in self.history.jobs)
        counts = ", ".join(f"{count:,} {outcome}" for outcome, count in outcomes.most_common())
        yield f"jobs             {len(self.history.jobs):,}: {counts}"
        attempts = sum(event["event_type"] == "job.started" for event in self.history.events)
        lost = sum(event["event_type"] == "job.lease_lost" for event in self.history.events)
        yield f"events           {len(self.history.events):,}: {attempts:,} attempts, {lost:,} lost leases"

    def _recoveries(self) -> Iterator[str]:
        heads = f"{'next job done: p50':>18} {'p99':>8}   {'held jobs back: p50':>19} {'p99':>8}"
        yield f"{'fault':<14} {'times':>5}   {heads}"
        total = 0
        for times in recoveries(self.history, self.faults):
            total += times.faults
            next_done = f"{percentile(times.until_next, 0.5):>18} {percentile(times.until_next, 0.99):>8}"
            back = f"{percentile(times.taken_over, 0.5):>19} {percentile(times.taken_over, 0.99):>8}"
            line = f"{times.kind:<14} {times.faults:>5}   {next_done}   {back if times.taken_over else ''}"
            yield line.rstrip()
        yield f"{'all':<14} {total:>5}"

    def _lost(self) -> int:
        stored = {job["job_id"] for job in self.history.jobs}
        acknowledged = {
            submission.job_id for submission in self.history.submissions if submission.answer == "ok"
        }
        return len(acknowledged - stored)

    def _doubled(self) -> int:
        made = Counter((e.kind, e.job_id) for e in self.history.effects if e.kind != "outside")
        return sum(count > 1 for count in made.values())

    def dump(self) -> None:
        """Store the tables beside the logs: the database ends with the run."""
        for name in ("jobs", "events", "results", "dead_letters", "ticks", "workers"):
            rows = getattr(self.history, name)
            text = "".join(json.dumps(row, default=str) + "\n" for row in rows)
            (self.home / f"{name}.jsonl").write_text(text)

    def evidence(self) -> str:
        """Return the first violations: events of their jobs, client logs about them, the faults around."""
        violations = [v for promise in self.verdict.findings for v in promise[:MAX_VIOLATIONS]]
        return "\n\n".join("\n".join(self._offence(violation)) for violation in violations)

    def _offence(self, violation: PromiseViolation) -> Iterator[str]:
        yield f"== {violation}"
        events = [event for event in self.history.events if event["job_id"] == violation.job_id]
        if violation.job_id is None or not events:
            return
        events.sort(key=lambda event: event["event_seq"])
        for e in events:
            what = f"{e['event_seq']:>3} {e['event_type']:<20} {e['status']:<9} attempt {e['attempt']}"
            actor = f"{e['actor_type']} {e['actor_id']}"
            yield f"  {e['occurred_at']:%H:%M:%S.%f} {what} by {actor} {e['payload'] or ''}"
        yield from self._client_log(str(violation.job_id))
        begun, ended = events[0]["occurred_at"] - _AROUND, events[-1]["occurred_at"] + _AROUND
        for fault in self.faults:
            if begun.timestamp() < fault["over_at"] and fault["begun_at"] < ended.timestamp():
                yield f"  fault {fault}"

    def _client_log(self, job_id: str) -> Iterator[str]:
        for number in range(CLIENTS):
            for line in lines(self.home / f"c{number}.jsonl"):
                text = str(line)
                if job_id in text and line["op"] != "feed":
                    yield f"  log {text[:300]}"


def _number(promise: str) -> int:
    return int(promise[1:])
