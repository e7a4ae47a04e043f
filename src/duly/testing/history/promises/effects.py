"""Promises about effects of handlers, failure callbacks and dead letters."""

from __future__ import annotations

from collections import Counter, defaultdict

from duly.core.states import EventType
from duly.testing.history.checker import HistoryIndex, JobHistory, Key, PromiseFindings, Row, key_of, promise
from duly.testing.history.records import Effect

_STARTED, _DEADLETTERED = EventType.STARTED.value, EventType.DEADLETTERED.value


@promise
def i7(index: HistoryIndex, findings: PromiseFindings) -> None:
    """Effects in ctx.transaction() happen once if completed, else never; others at least once, under one key.

    A failure callback happens exactly once for each failed job of a type that has one. Missing effects are
    found only for the types in `History.required_effects`, surplus ones for all.
    """
    done: dict[Key, list[Effect]] = defaultdict(list)
    for effect in index.history.effects:
        findings.facts += 1
        done[effect.org_id, effect.job_id].append(effect)
    for key in done.keys() - index.jobs.keys():
        findings.report("an effect of a job that does not exist", key)
    owed = set(index.history.owed_callbacks)
    for job, row in index.stored_jobs:
        required_effects = index.history.required_effects.get(row["job_type"], ())
        findings.facts += bool(required_effects)
        mine = done.get(job.key, [])
        if required_effects or mine:
            _check_transaction(findings, job, row, mine, required_effects)
            _check_outside(findings, job, row, mine, required_effects)
            _check_callback(findings, job, row, mine, required_effects)
        if row["job_id"] in owed:
            findings.report("its failure callback is still owed", job.key)


def _of(effects: list[Effect], kind: str) -> list[int]:
    return [effect.attempt for effect in effects if effect.kind == kind]


def _check_transaction(
    findings: PromiseFindings,
    job: JobHistory,
    row: Row,
    mine: list[Effect],
    required_effects: tuple[str, ...],
) -> None:
    made = _of(mine, "transaction")
    maximum = int(row["status"] == "completed")
    minimum = maximum if "transaction" in required_effects else 0
    if not minimum <= len(made) <= maximum:
        findings.report(
            f"it is {row['status']}, but its effect was committed {len(made)} times",
            job.key,
            attempts=made,
        )


def _check_outside(
    findings: PromiseFindings,
    job: JobHistory,
    row: Row,
    mine: list[Effect],
    required_effects: tuple[str, ...],
) -> None:
    made = _of(mine, "outside")
    if "outside" in required_effects and row["status"] == "completed" and not made:
        findings.report("it is completed, but its outside effect never happened", job.key)
    keys = {effect.key for effect in mine if effect.kind == "outside"}
    if len(keys) > 1:
        findings.report("its outside effects have different deduplication keys", job.key, keys=sorted(keys))
    started = {e["attempt"] for e in job.events if e["event_type"] == _STARTED} if made else set()
    if not started.issuperset(made):
        findings.report("an effect of an attempt that never started", job.key, attempts=made)


def _check_callback(
    findings: PromiseFindings,
    job: JobHistory,
    row: Row,
    mine: list[Effect],
    required_effects: tuple[str, ...],
) -> None:
    called = len(_of(mine, "bridge"))
    expected = row["status"] == "failed" and (
        "bridge" in required_effects or ("bridge.dead" in required_effects and row["outcome"] == "dead")
    )
    if called != expected:
        findings.report(
            f"it is {row['status']} ({row['outcome']}), but its callback was made {called} times",
            job.key,
            expected=int(expected),
        )


@promise
def i11(index: HistoryIndex, findings: PromiseFindings) -> None:
    """A job is dead if and only if it has one dead letter, one event job.deadlettered, and one alert.

    The alert comes a little later: unless alerting ran to the end, only those marked as alerted need one.
    """
    letters = Counter(key_of(item) for item in index.history.dead_letters)
    alerts = Counter(key_of(item) for item in index.history.alerts)
    for key in (letters.keys() | alerts.keys()) - index.jobs.keys():
        findings.report("a dead letter of a job that does not exist", key)
    for letter in index.history.dead_letters:
        expected = int(index.history.alerting or letter.get("alerted_at") is not None)
        if alerts.pop(key_of(letter), 0) != expected:
            findings.report(f"its dead letter does not have {expected} alerts", key_of(letter))
    for key in alerts:
        findings.report("an alert of a job without a dead letter", key)
    for job, row in index.stored_jobs:
        events = sum(event["event_type"] == _DEADLETTERED for event in job.events)
        dead, stored = row["outcome"] == "dead", letters[job.key]
        findings.facts += bool(dead or events or stored)
        if not dead == events == stored:
            findings.report(
                f"its outcome is {row['outcome']}; it has {stored} dead letters and {events} events of them",
                job.key,
            )
