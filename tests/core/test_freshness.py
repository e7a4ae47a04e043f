"""Freshness of jobs: whether an active job is really still active."""

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


def signals_of(statuses: frozenset[Status]) -> st.SearchStrategy[FreshnessSignals]:
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
    heartbeat: float | None = None,
    lease: float | None = None,
) -> FreshnessSignals:
    at = [None if hours is None else NOW - hours * HOUR for hours in (started, heartbeat, lease)]
    return FreshnessSignals(Status(status), NOW - run * HOUR, *at)


@pytest.mark.parametrize(
    ("signals", "state"),
    [
        (ago("queued", run=1), "fresh"),
        (ago("queued", run=24), "fresh"),
        (ago("queued", run=24.001), "likely_stale"),
        (ago("queued", run=-48), "fresh"),
        (ago("queued", run=30, heartbeat=1), "likely_stale"),
        (ago("running", run=48, started=6), "fresh"),
        (ago("running", run=48, started=6.001), "likely_stale"),
        (ago("running", run=48, started=40, heartbeat=0, lease=-1), "likely_stale"),
        (ago("running", run=48, started=1, heartbeat=0.2, lease=0.1), "likely_stale"),
        (ago("partial", run=48, started=1, heartbeat=0, lease=0), "fresh"),
        (ago("partial", run=48, heartbeat=7), "unknown"),
        (ago("running", run=1), "unknown"),
        (ago("partial", run=1), "unknown"),
        (ago("completed", run=900), "terminal"),
    ],
)
def test_the_signals_determine_the_freshness(signals: FreshnessSignals, state: str) -> None:
    assert assess(signals, POLICY, NOW).state == state


@given(signals_of(TERMINAL), policies, moments)
def test_an_ended_job_is_terminal_whatever_its_other_signals(
    signals: FreshnessSignals, policy: LifecyclePolicy, now: datetime
) -> None:
    verdict = assess(signals, policy, now)
    assert (verdict.state, verdict.threshold, verdict.evaluated_at) == (Freshness.TERMINAL, None, now)


@given(signals_of(frozenset(Status) - TERMINAL), moments)
def test_the_freshness_of_an_uncovered_job_type_is_unknown(signals: FreshnessSignals, now: datetime) -> None:
    assert assess(signals, UNCOVERED, now).state is Freshness.UNKNOWN


@given(signals_of(frozenset({Status.QUEUED})), spans, moments)
def test_a_queued_job_is_stale_exactly_when_it_was_runnable_for_too_long(
    signals: FreshnessSignals, span: timedelta, now: datetime
) -> None:
    verdict = assess(signals, LifecyclePolicy(queued_stale_after=span, running_stale_after=TICK), now)
    assert (verdict.state is Freshness.LIKELY_STALE) == (now - signals.runnable_at > span)
    assert verdict.threshold == span


@given(signals_of(HELD), spans, moments)
def test_a_held_job_is_stale_when_its_attempt_is_too_old_or_its_lease_expired(
    signals: FreshnessSignals, span: timedelta, now: datetime
) -> None:
    verdict = assess(signals, LifecyclePolicy(queued_stale_after=TICK, running_stale_after=span), now)
    if signals.attempt_started_at is None:
        assert verdict.state == "unknown"
        return
    assert verdict.overdue == (now - signals.attempt_started_at > span)
    lost = signals.lease_ends_at is not None and now > signals.lease_ends_at
    assert verdict.state == ("likely_stale" if verdict.overdue or lost else "fresh")


@given(signals_of(HELD), policies.filter(lambda policy: policy.covered), moments)
def test_heartbeats_do_not_keep_an_overdue_attempt_fresh(
    signals: FreshnessSignals, policy: LifecyclePolicy, now: datetime
) -> None:
    old = now - policy.running_stale_after - TICK
    alive = replace(signals, attempt_started_at=old, heartbeat_at=now, lease_ends_at=now + HOUR)
    assert assess(alive, policy, now).state is Freshness.LIKELY_STALE


@given(signals_of(frozenset({Status.QUEUED})), policies.filter(lambda policy: policy.covered), moments)
def test_a_pause_is_part_of_the_evidence_and_does_not_change_the_freshness(
    signals: FreshnessSignals, policy: LifecyclePolicy, now: datetime
) -> None:
    paused, free = (assess(replace(signals, paused=flag), policy, now) for flag in (True, False))
    assert paused.state == free.state
    assert (paused.evidence.get("paused"), free.evidence.get("paused")) == (True, None)


@pytest.mark.parametrize(
    ("signals", "policy", "label"),
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
def test_the_displayed_freshness_never_overstates_health(
    signals: FreshnessSignals, policy: LifecyclePolicy, label: str
) -> None:
    assert assess(signals, policy, NOW).shown == label


def test_an_assessment_contains_its_evidence() -> None:
    verdict = assess(ago("running", started=7, heartbeat=1, lease=0.5), POLICY, NOW)
    assert dict(verdict.evidence) == {
        "status": "running",
        "since": "2026-03-01T05:00:00+00:00",
        "age_seconds": 25200.0,
        "last_seen_at": "2026-03-01T11:00:00+00:00",
        "lease_ended_at": "2026-03-01T11:30:00+00:00",
    }
    assert verdict.threshold == 6 * HOUR
