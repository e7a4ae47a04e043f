"""Check the times of job types, workers and retention against each other before a worker starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import timedelta

from duly.core.errors import ConfigurationError
from duly.core.policy import JobPolicy, Retention

MARGIN = 10
"""The expected runtime must be below the timeout by at least one tenth of the timeout."""


@dataclass(frozen=True, slots=True)
class NamedValue:
    """A value with the name by which it is set."""

    name: str
    value: object
    owner: str = ""

    def __str__(self) -> str:
        return f"{self.name}{' of ' if self.owner else ''}{self.owner} = {self.value}"


@dataclass(frozen=True, slots=True)
class PolicyViolation:
    """Two values that contradict each other, the rule that they break, and the fix."""

    one: NamedValue
    other: NamedValue
    rule: str
    fix: str

    def __str__(self) -> str:
        return f"{self.one}, {self.other}: {self.rule}"


@dataclass(frozen=True, slots=True)
class RunConditions:
    """The settings of worker and retention under which job types run."""

    lease: timedelta
    heartbeat: timedelta
    retention: Retention
    with_callbacks: Set[str] | None = None
    """The job types with failure callbacks; None if the declarations are not at hand."""


def violations(policies: Mapping[str, JobPolicy], conditions: RunConditions) -> list[PolicyViolation]:
    """Return all violations, in the order of the job types' names."""
    found = list(lease_violations(conditions.lease, conditions.heartbeat))
    for job_type, policy in sorted(policies.items()):
        found += _of_job_type(job_type, policy, conditions)
    return found


def raise_violations(found: Sequence[PolicyViolation]) -> None:
    """Raise one error for all violations, if there are any."""
    if found:
        raise ConfigurationError(
            "; ".join(map(str, found)),
            field=found[0].one.name,
            fix="; ".join(dict.fromkeys(one.fix for one in found)),
        )


def lease_violations(lease: timedelta, heartbeat: timedelta) -> Iterator[PolicyViolation]:
    """Check that a worker can miss a heartbeat or two without losing its lease."""
    if _sum(heartbeat, heartbeat, heartbeat) > lease:
        yield PolicyViolation(
            NamedValue("heartbeat", heartbeat, "the worker"),
            NamedValue("lease", lease, "the worker"),
            "the lease must be at least three heartbeats long",
            "lower the heartbeat, or raise the lease",
        )


def retry_horizon(policy: JobPolicy) -> timedelta:
    """Return the longest time over which a job is tried: attempts up to the timeout, delays in full."""
    retry = policy.retry
    try:
        waits = [retry.delay(failures, 1.0) for failures in range(1, retry.max_attempts)]
    except OverflowError:
        return timedelta.max
    return _sum(*[policy.timeout] * retry.max_attempts, *waits)


def _of_job_type(job_type: str, policy: JobPolicy, conditions: RunConditions) -> Iterator[PolicyViolation]:
    yield from _runtime(job_type, policy)
    yield from _ledger(job_type, policy)
    yield from _failure_callback(job_type, policy, conditions.with_callbacks)
    if policy.lifecycle.covered:
        yield from _stale_after(job_type, policy, conditions.lease)
        yield from _retention(job_type, policy, conditions.retention)
        yield from _truth(job_type, policy, conditions.with_callbacks)


def _runtime(job_type: str, policy: JobPolicy) -> Iterator[PolicyViolation]:
    expected, timeout = policy.lifecycle.expected_max_runtime, policy.timeout
    if expected >= timeout - timeout / MARGIN:
        yield PolicyViolation(
            NamedValue("expected_max_runtime", expected, job_type),
            NamedValue("timeout", timeout, job_type),
            f"the expected runtime and a margin of {timeout / MARGIN} must be less than the timeout",
            f"raise the timeout of {job_type}, or lower its expected_max_runtime",
        )


def _stale_after(job_type: str, policy: JobPolicy, lease: timedelta) -> Iterator[PolicyViolation]:
    stale_after = NamedValue("running_stale_after", policy.lifecycle.running_stale_after, job_type)
    if policy.timeout > policy.lifecycle.running_stale_after:
        yield PolicyViolation(
            NamedValue("timeout", policy.timeout, job_type),
            stale_after,
            "the timeout must not exceed running_stale_after, at which a running job is failed as stale",
            f"lower the timeout of {job_type}, or raise its lifecycle's running_stale_after",
        )
    if lease >= policy.lifecycle.running_stale_after:
        yield PolicyViolation(
            NamedValue("lease", lease, "the worker"),
            stale_after,
            "the lease of a lost worker must expire before its jobs are failed as stale",
            f"lower DULY_WORKER_LEASE, or raise the running_stale_after of {job_type}",
        )


def _ledger(job_type: str, policy: JobPolicy) -> Iterator[PolicyViolation]:
    horizon = retry_horizon(policy)
    if horizon >= policy.ledger_ttl:
        yield PolicyViolation(
            NamedValue("ledger_ttl", policy.ledger_ttl, job_type),
            NamedValue("retry horizon", horizon, job_type),
            f"with {policy.retry.max_attempts} attempts up to the timeout and their longest delays "
            "the idempotency key would expire while the job is still retried",
            f"raise the ledger_ttl of {job_type}, or lower its timeout or max_attempts",
        )


def _retention(job_type: str, policy: JobPolicy, retention: Retention) -> Iterator[PolicyViolation]:
    running = policy.lifecycle.running_stale_after
    active = _sum(policy.lifecycle.queued_stale_after, running)
    for kind, period, name, needed in (
        ("jobs", retention.jobs, "queued_stale_after + running_stale_after", active),
        ("events", retention.events, "queued_stale_after + running_stale_after", active),
        ("partial_results", retention.partial_results, "running_stale_after", running),
    ):
        if period <= needed:
            yield PolicyViolation(
                NamedValue(f"keep_{kind}", period),
                NamedValue(name, needed, job_type),
                f"{kind.replace('_', ' ')} must be kept longer than a job of this type can be active",
                f"raise DULY_KEEP_{kind.upper()}, or lower the lifecycle's times of {job_type}",
            )


def _failure_callback(
    job_type: str, policy: JobPolicy, with_callbacks: Set[str] | None
) -> Iterator[PolicyViolation]:
    required = policy.lifecycle.requires_failed_bridge
    if required and with_callbacks is not None and job_type not in with_callbacks:
        yield PolicyViolation(
            NamedValue("requires_failed_bridge", True, job_type),
            NamedValue("on_failed", None, job_type),
            "a job type that requires failure callbacks must declare one",
            f"declare {job_type} with on_failed=..., or set requires_failed_bridge=False",
        )


def _truth(job_type: str, policy: JobPolicy, with_callbacks: Set[str] | None) -> Iterator[PolicyViolation]:
    """Check that a failure callback, the reconciler, or both end every covered job."""
    reconciled = policy.lifecycle.supports_reconciliation
    if not reconciled and with_callbacks is not None and job_type not in with_callbacks:
        yield PolicyViolation(
            NamedValue("supports_reconciliation", False, job_type),
            NamedValue("on_failed", None, job_type),
            "a covered job type needs reconciliation, a failure callback, or both",
            f"declare {job_type} with on_failed=..., set supports_reconciliation=True, or set covered=False",
        )


def _sum(*parts: timedelta) -> timedelta:
    try:
        return sum(parts, timedelta(0))
    except OverflowError:
        return timedelta.max
