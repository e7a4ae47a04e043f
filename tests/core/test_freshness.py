"""Whether an active job can still be believed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.core.freshness import Freshness, FreshnessSignals, assess
from duly.core.policy import LifecyclePolicy
from duly.core.states import HELD, TERMINAL, Status

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR, TICK = timedelta(hours=1), timedelta(microseconds=1)
POLICY = LifecyclePolicy(queued_stale_after=24 * HOUR, running_stale_after=6 * HOUR)
UNCOVERED = LifecyclePolicy(covered=False)

moments = st.timedeltas(-400 * HOUR, 400 * HOUR).map(NOW.__add__)
spans = st.timedeltas(TICK, 300 * HOUR)
policies = st.builds(
    LifecyclePolicy, covered=st.booleans(), queued_stale_after=spans, running_stale_after=spans
)


def some_signs(statuses: frozenset[Status]) -> st.SearchStrategy[FreshnessSignals]:
    maybe = st.none() | moments
    flag = st.booleans()
    return st.builds(
        FreshnessSignals,
        st.sampled_from(sorted(statuses)),
        moments,
        maybe,
        maybe,
        maybe,
        flag,
        st.just(True),
        flag,
    )


def ago(
    status: str,
    *,
    run: float = 0,
    started: float | None = None,
    seen: float | None = None,
    lease: float | None = None,
) -> FreshnessSignals:
    at = [None if hours is None else NOW - hours * HOUR for hours in (started, seen, lease)]
    return FreshnessSignals(Status(status), NOW - run * HOUR, *at)


@pytest.mark.parametrize(
    ("signs", "state"),
    [
        (ago("queued", run=1), "fresh"),
        (ago("queued", run=24), "fresh"),
        (ago("queued", run=24.001), "likely_stale"),
        (ago("queued", run=-48), "fresh"),
        (ago("queued", run=30, seen=1), "likely_stale"),
        (ago("running", run=48, started=6), "fresh"),
        (ago("running", run=48, started=6.001), "likely_stale"),
        (ago("running", run=48, started=40, seen=0, lease=-1), "likely_stale"),
        (ago("running", run=48, started=1, seen=0.2, lease=0.1), "likely_stale"),
        (ago("partial", run=48, started=1, seen=0, lease=0), "fresh"),
        (ago("partial", run=48, seen=7), "unknown"),
        (ago("running", run=1), "unknown"),
        (ago("partial", run=1), "unknown"),
        (ago("completed", run=900), "terminal"),
    ],
)
def test_the_evidence_has_its_verdict(signs: FreshnessSignals, state: str) -> None:
    assert assess(signs, POLICY, NOW).state == state


@given(some_signs(TERMINAL), policies, moments)
def test_a_job_that_ended_is_terminal_whatever_else_is_known(
    signs: FreshnessSignals, policy: LifecyclePolicy, now: datetime
) -> None:
    verdict = assess(signs, policy, now)
    assert (verdict.state, verdict.threshold, verdict.evaluated_at) == (Freshness.TERMINAL, None, now)


@given(some_signs(frozenset(Status) - TERMINAL), moments)
def test_a_job_type_that_is_not_covered_is_never_judged(signs: FreshnessSignals, now: datetime) -> None:
    assert assess(signs, UNCOVERED, now).state is Freshness.UNKNOWN


@given(some_signs(frozenset({Status.QUEUED})), spans, moments)
def test_a_waiting_job_is_stale_exactly_when_it_could_have_run_for_too_long(
    signs: FreshnessSignals, span: timedelta, now: datetime
) -> None:
    verdict = assess(signs, LifecyclePolicy(queued_stale_after=span, running_stale_after=TICK), now)
    assert (verdict.state is Freshness.LIKELY_STALE) == (now - signs.runnable_at > span)
    assert verdict.threshold == span


@given(some_signs(HELD), spans, moments)
def test_a_held_job_is_stale_when_its_attempt_is_too_old_or_its_lease_has_ended(
    signs: FreshnessSignals, span: timedelta, now: datetime
) -> None:
    verdict = assess(signs, LifecyclePolicy(queued_stale_after=TICK, running_stale_after=span), now)
    if signs.attempt_started_at is None:
        assert verdict.state == "unknown"
        return
    assert verdict.overdue == (now - signs.attempt_started_at > span)
    lost = signs.lease_ends_at is not None and now > signs.lease_ends_at
    assert verdict.state == ("likely_stale" if verdict.overdue or lost else "fresh")


@given(some_signs(HELD), policies.filter(lambda policy: policy.covered), moments)
def test_no_heartbeat_keeps_an_attempt_beyond_its_horizon(
    signs: FreshnessSignals, policy: LifecyclePolicy, now: datetime
) -> None:
    old = now - policy.running_stale_after - TICK
    alive = replace(signs, attempt_started_at=old, heartbeat_at=now, lease_ends_at=now + HOUR)
    assert assess(alive, policy, now).state is Freshness.LIKELY_STALE


@given(some_signs(frozenset({Status.QUEUED})), policies.filter(lambda policy: policy.covered), moments)
def test_a_pause_is_told_with_the_verdict_and_does_not_change_it(
    signs: FreshnessSignals, policy: LifecyclePolicy, now: datetime
) -> None:
    paused, free = (assess(replace(signs, paused=flag), policy, now) for flag in (True, False))
    assert paused.state == free.state
    assert (paused.evidence.get("paused"), free.evidence.get("paused")) == (True, None)


@pytest.mark.parametrize(
    ("signs", "policy", "shown"),
    [
        (ago("running", started=0), POLICY, "fresh_active"),
        (ago("running", started=9), POLICY, "likely_stale"),
        (ago("running"), POLICY, "likely_stale"),
        (ago("queued"), UNCOVERED, "likely_stale"),
        (ago("failed"), POLICY, "terminal_normal"),
        (replace(ago("failed"), reconciled=True), POLICY, "reconciled_failed"),
        (replace(ago("completed"), reconciled=True), POLICY, "terminal_normal"),
        (replace(ago("canceled"), reconciled=True), POLICY, "terminal_normal"),
        (replace(ago("running", started=0), reconciled=True), POLICY, "fresh_active"),
    ],
)
def test_people_are_shown_no_more_health_than_there_is(
    signs: FreshnessSignals, policy: LifecyclePolicy, shown: str
) -> None:
    assert assess(signs, policy, NOW).shown == shown


def test_a_verdict_names_its_evidence() -> None:
    verdict = assess(ago("running", started=7, seen=1, lease=0.5), POLICY, NOW)
    assert dict(verdict.evidence) == {
        "status": "running",
        "since": "2026-03-01T05:00:00+00:00",
        "age_seconds": 25200.0,
        "last_seen_at": "2026-03-01T11:00:00+00:00",
        "lease_ended_at": "2026-03-01T11:30:00+00:00",
    }
    assert verdict.threshold == 6 * HOUR
