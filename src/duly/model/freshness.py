"""Whether an active job can still be believed. One function for everybody who asks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType

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


class ReasonCode(StrEnum):
    """Why a job was put right by somebody other than its worker."""

    STALE_QUEUED = "run.stale_queued"
    STALE_RUNNING = "run.stale_running"
    INFRASTRUCTURE = "run.infrastructure_timeout_or_abandonment"
    FAILURE_BRIDGE = "run.queue_failure_bridge"
    ADAPTER_OUT_OF_SYNC = "run.adapter_out_of_sync"
    CANCELED = "run.canceled"


@dataclass(frozen=True, slots=True)
class Signs:
    """What is known of a job's life, by the database's clock."""

    status: Status
    runnable_at: datetime
    """When it could first have been claimed: its `run_at`."""
    attempt_started_at: datetime | None = None
    last_seen_at: datetime | None = None
    """The newest of its worker's heartbeat and its own last change."""
    reconciled: bool = False


@dataclass(frozen=True, slots=True)
class Assessment:
    """The verdict with its evidence."""

    state: Freshness
    shown: ShownFreshness
    evaluated_at: datetime
    threshold: timedelta | None
    evidence: MappingProxyType[str, str]


def assess(signs: Signs, policy: LifecyclePolicy, now: datetime) -> Assessment:
    """Judge one job at one moment."""
    if signs.status.terminal:
        return _verdict(Freshness.TERMINAL, signs, now, None, {})
    if not policy.covered:
        return _verdict(Freshness.UNKNOWN, signs, now, None, {"reason": "the job type is not covered"})
    held = signs.status in HELD
    threshold = policy.running_stale_after if held else policy.queued_stale_after
    since = _since(signs) if held else signs.runnable_at
    if since is None:
        return _verdict(Freshness.UNKNOWN, signs, now, threshold, {"reason": "no sign of life recorded"})
    age = now - since
    state = Freshness.LIKELY_STALE if age > threshold else Freshness.FRESH
    return _verdict(
        state, signs, now, threshold, {"since": since.isoformat(), "age_seconds": str(age.total_seconds())}
    )


def _since(signs: Signs) -> datetime | None:
    known = [at for at in (signs.attempt_started_at, signs.last_seen_at) if at is not None]
    return max(known, default=None)


def _verdict(
    state: Freshness, signs: Signs, now: datetime, threshold: timedelta | None, evidence: dict[str, str]
) -> Assessment:
    facts = MappingProxyType({"status": signs.status.value, **evidence})
    return Assessment(state, _shown(state, signs), now, threshold, facts)


def _shown(state: Freshness, signs: Signs) -> ShownFreshness:
    if state is Freshness.TERMINAL:
        forced = signs.reconciled and signs.status is Status.FAILED
        return ShownFreshness.RECONCILED_FAILED if forced else ShownFreshness.TERMINAL_NORMAL
    # What cannot be judged is shown with the suspicion it deserves, never as healthy.
    return ShownFreshness.FRESH_ACTIVE if state is Freshness.FRESH else ShownFreshness.LIKELY_STALE
