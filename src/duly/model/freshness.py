"""Whether an active job can still be believed. One function for everybody who asks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from duly.model.policy import LifecyclePolicy
from duly.model.states import HELD, Status


class Freshness(StrEnum):
    """What the evidence says about a job."""

    FRESH = "fresh"
    LIKELY_STALE = "likely_stale"
    TERMINAL = "terminal"
    UNKNOWN = "unknown"


class ShownFreshness(StrEnum):
    """What people are shown."""

    FRESH_ACTIVE = "fresh_active"
    LIKELY_STALE = "likely_stale"
    RECONCILED_FAILED = "reconciled_failed"
    TERMINAL_NORMAL = "terminal_normal"


@dataclass(frozen=True, slots=True)
class Signs:
    """What is known of a job's life, by the database's clock."""

    status: Status
    runnable_at: datetime
    """When it could first have been claimed: its `run_at`."""
    attempt_started_at: datetime | None = None
    last_seen_at: datetime | None = None
    """Its worker's last heartbeat."""
    lease_ends_at: datetime | None = None
    """How long its worker may be silent."""
    paused: bool = False
    """Whether somebody keeps it from being claimed on purpose."""
    queued: bool = True
    """Whether a queue has it, if it says that it waits."""
    reconciled: bool = False


@dataclass(frozen=True, slots=True)
class Assessment:
    """The verdict with its evidence."""

    state: Freshness
    shown: ShownFreshness
    evaluated_at: datetime
    threshold: timedelta | None
    evidence: MappingProxyType[str, Any]
    overdue: bool = False
    """Whether its age is beyond the threshold: the time to put it right, unless somebody paused it."""


def assess(signs: Signs, policy: LifecyclePolicy, now: datetime) -> Assessment:
    """Judge one job at one moment."""
    if signs.status.terminal:
        return _verdict(Freshness.TERMINAL, signs, now, None, {})
    if not policy.covered:
        return _verdict(Freshness.UNKNOWN, signs, now, None, {"reason": "the job type is not covered"})
    return _held(signs, policy, now) if signs.status in HELD else _waiting(signs, policy, now)


def _waiting(signs: Signs, policy: LifecyclePolicy, now: datetime) -> Assessment:
    facts: dict[str, Any] = {"paused": True} if signs.paused else {}
    if not signs.queued:
        facts["queued"] = False
        return _verdict(Freshness.LIKELY_STALE, signs, now, policy.queued_stale_after, facts)
    return _by_age(signs.runnable_at, policy.queued_stale_after, signs, now, facts)


def _held(signs: Signs, policy: LifecyclePolicy, now: datetime) -> Assessment:
    """Heartbeats keep a lease, but no attempt for longer than its horizon."""
    seen, until, threshold = signs.last_seen_at, signs.lease_ends_at, policy.running_stale_after
    facts: dict[str, Any] = {} if seen is None else {"last_seen_at": seen.isoformat()}
    if signs.attempt_started_at is None:
        facts["reason"] = "no start of its attempt recorded"
        return _verdict(Freshness.UNKNOWN, signs, now, threshold, facts)
    judged = _by_age(signs.attempt_started_at, threshold, signs, now, facts)
    if until is None or now <= until:
        return judged
    told = {**judged.evidence, "lease_ended_at": until.isoformat()}
    return _verdict(Freshness.LIKELY_STALE, signs, now, threshold, told, overdue=judged.overdue)


def _by_age(
    since: datetime, threshold: timedelta, signs: Signs, now: datetime, facts: dict[str, Any]
) -> Assessment:
    age = now - since
    overdue = age > threshold
    state = Freshness.LIKELY_STALE if overdue else Freshness.FRESH
    told = {**facts, "since": since.isoformat(), "age_seconds": age.total_seconds()}
    return _verdict(state, signs, now, threshold, told, overdue=overdue)


def _verdict(
    state: Freshness,
    signs: Signs,
    now: datetime,
    threshold: timedelta | None,
    evidence: dict[str, Any],
    *,
    overdue: bool = False,
) -> Assessment:
    facts = MappingProxyType({"status": signs.status.value, **evidence})
    return Assessment(state, _shown(state, signs), now, threshold, facts, overdue)


def _shown(state: Freshness, signs: Signs) -> ShownFreshness:
    if state is Freshness.TERMINAL:
        forced = signs.reconciled and signs.status is Status.FAILED
        return ShownFreshness.RECONCILED_FAILED if forced else ShownFreshness.TERMINAL_NORMAL
    # What cannot be judged is shown with the suspicion it deserves, never as healthy.
    return ShownFreshness.FRESH_ACTIVE if state is Freshness.FRESH else ShownFreshness.LIKELY_STALE
