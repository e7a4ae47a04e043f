"""Assess whether the status of an active job is still true."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from duly.core.policy import LifecyclePolicy
from duly.core.states import HELD, Status


class Freshness(StrEnum):
    """The freshness of a job by the evidence."""

    FRESH = "fresh"
    LIKELY_STALE = "likely_stale"
    TERMINAL = "terminal"
    UNKNOWN = "unknown"


class FreshnessLabel(StrEnum):
    """The freshness of a job as the console shows it."""

    FRESH_ACTIVE = "fresh_active"
    LIKELY_STALE = "likely_stale"
    RECONCILED_FAILED = "reconciled_failed"
    TERMINAL_NORMAL = "terminal_normal"


@dataclass(frozen=True, slots=True)
class FreshnessSignals:
    """The signals by which freshness is assessed; times by the database's clock."""

    status: Status
    runnable_at: datetime
    """The first time at which a worker could claim the job: its `run_at`."""
    attempt_started_at: datetime | None = None
    heartbeat_at: datetime | None = None
    """The last heartbeat of its worker."""
    lease_ends_at: datetime | None = None
    paused: bool = False
    """Whether a pause keeps workers from claiming the job."""
    queued: bool = True
    """Whether a queue contains the job, if its status is queued."""
    reconciled: bool = False


@dataclass(frozen=True, slots=True)
class Assessment:
    """The freshness of a job at one time, with its evidence."""

    state: Freshness
    shown: FreshnessLabel
    evaluated_at: datetime
    threshold: timedelta | None
    evidence: MappingProxyType[str, Any]
    overdue: bool = False
    """Whether its age exceeds the threshold: the reconciler repairs the job, unless it is paused."""


def assess(signals: FreshnessSignals, policy: LifecyclePolicy, now: datetime) -> Assessment:
    """Assess the freshness of one job at one time."""
    if signals.status.terminal:
        return _assessment(Freshness.TERMINAL, signals, now, None, {})
    if not policy.covered:
        return _assessment(Freshness.UNKNOWN, signals, now, None, {"reason": "the job type is not covered"})
    return _held(signals, policy, now) if signals.status in HELD else _waiting(signals, policy, now)


def _waiting(signals: FreshnessSignals, policy: LifecyclePolicy, now: datetime) -> Assessment:
    facts: dict[str, Any] = {"paused": True} if signals.paused else {}
    if not signals.queued:
        facts["queued"] = False
        return _assessment(Freshness.LIKELY_STALE, signals, now, policy.queued_stale_after, facts)
    return _by_age(signals.runnable_at, policy.queued_stale_after, signals, now, facts)


def _held(signals: FreshnessSignals, policy: LifecyclePolicy, now: datetime) -> Assessment:
    """Assess a held job: heartbeats renew a lease, but never beyond `running_stale_after`."""
    heartbeat_at, threshold = signals.heartbeat_at, policy.running_stale_after
    facts: dict[str, Any] = {} if heartbeat_at is None else {"last_seen_at": heartbeat_at.isoformat()}
    if signals.attempt_started_at is None:
        facts["reason"] = "no start of its attempt recorded"
        return _assessment(Freshness.UNKNOWN, signals, now, threshold, facts)
    by_age = _by_age(signals.attempt_started_at, threshold, signals, now, facts)
    if signals.lease_ends_at is None or now <= signals.lease_ends_at:
        return by_age
    evidence = {**by_age.evidence, "lease_ended_at": signals.lease_ends_at.isoformat()}
    return _assessment(Freshness.LIKELY_STALE, signals, now, threshold, evidence, overdue=by_age.overdue)


def _by_age(
    since: datetime, threshold: timedelta, signals: FreshnessSignals, now: datetime, facts: dict[str, Any]
) -> Assessment:
    age = now - since
    overdue = age > threshold
    state = Freshness.LIKELY_STALE if overdue else Freshness.FRESH
    evidence = {**facts, "since": since.isoformat(), "age_seconds": age.total_seconds()}
    return _assessment(state, signals, now, threshold, evidence, overdue=overdue)


def _assessment(
    state: Freshness,
    signals: FreshnessSignals,
    now: datetime,
    threshold: timedelta | None,
    evidence: dict[str, Any],
    *,
    overdue: bool = False,
) -> Assessment:
    facts = MappingProxyType({"status": signals.status.value, **evidence})
    return Assessment(state, _label(state, signals), now, threshold, facts, overdue)


def _label(state: Freshness, signals: FreshnessSignals) -> FreshnessLabel:
    if state is Freshness.TERMINAL:
        forced = signals.reconciled and signals.status is Status.FAILED
        return FreshnessLabel.RECONCILED_FAILED if forced else FreshnessLabel.TERMINAL_NORMAL
    # An unknown freshness is shown as stale, never as healthy.
    return FreshnessLabel.FRESH_ACTIVE if state is Freshness.FRESH else FreshnessLabel.LIKELY_STALE
