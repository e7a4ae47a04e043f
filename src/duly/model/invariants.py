"""What must hold between a job type's times, a worker's and the retention's, before anything runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import timedelta

from duly.model.errors import ConfigurationError
from duly.model.policy import JobPolicy
from duly.model.retention import Retention

MARGIN = 10
"""Between the expected runtime and the time-out lies one tenth of the time-out."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value, and the name by which it is set."""

    name: str
    value: object
    whose: str = ""

    def __str__(self) -> str:
        return f"{self.name}{' of ' if self.whose else ''}{self.whose} = {self.value}"


@dataclass(frozen=True, slots=True)
class Violation:
    """Two values that cannot both be, by which rule, and what to do."""

    one: Value
    other: Value
    rule: str
    fix: str

    def __str__(self) -> str:
        return f"{self.one}, {self.other}: {self.rule}"


@dataclass(frozen=True, slots=True)
class Conditions:
    """What job types run under."""

    lease: timedelta
    heartbeat: timedelta
    retention: Retention
    bridged: Set[str] | None = None
    """The job types that are told of their failures; None if nobody has seen the code."""


def violations(policies: Mapping[str, JobPolicy], under: Conditions) -> list[Violation]:
    """Everything that cannot work; in the order of the job types' names."""
    found = list(silent_leases(under.lease, under.heartbeat))
    for job_type, policy in sorted(policies.items()):
        found += _of(job_type, policy, under)
    return found


def refuse(found: Sequence[Violation]) -> None:
    """Raise what was found, all of it in one error; nothing found, nothing raised."""
    if found:
        raise ConfigurationError(
            "; ".join(map(str, found)),
            field=found[0].one.name,
            fix="; ".join(dict.fromkeys(one.fix for one in found)),
        )


def silent_leases(lease: timedelta, heartbeat: timedelta) -> Iterator[Violation]:
    """A worker must be able to miss a heartbeat or two."""
    if _sum(heartbeat, heartbeat, heartbeat) > lease:
        yield Violation(
            Value("heartbeat", heartbeat, "the worker"),
            Value("lease", lease, "the worker"),
            "so seldom a heartbeat cannot keep the lease",
            "beat three times a lease, or more often",
        )


def retry_horizon(policy: JobPolicy) -> timedelta:
    """How long a job may be tried at most: every attempt to its time-out, every wait in full."""
    retry = policy.retry
    try:
        waits = [retry.delay(failures, 1.0) for failures in range(1, retry.max_attempts)]
    except OverflowError:
        return timedelta.max
    return _sum(*[policy.timeout] * retry.max_attempts, *waits)


def _of(job_type: str, policy: JobPolicy, under: Conditions) -> Iterator[Violation]:
    yield from _runtime(job_type, policy)
    yield from _forgotten_keys(job_type, policy)
    yield from _bridge(job_type, policy, under.bridged)
    if policy.lifecycle.covered:
        yield from _horizon(job_type, policy, under.lease)
        yield from _kept(job_type, policy, under.retention)
        yield from _path_to_the_truth(job_type, policy, under.bridged)


def _runtime(job_type: str, policy: JobPolicy) -> Iterator[Violation]:
    expected, timeout = policy.lifecycle.expected_max_runtime, policy.timeout
    if expected >= timeout - timeout / MARGIN:
        yield Violation(
            Value("expected_max_runtime", expected, job_type),
            Value("timeout", timeout, job_type),
            f"the expected runtime and a margin of {timeout / MARGIN} must be less than the time-out",
            f"raise the timeout of {job_type}, or expect less",
        )


def _horizon(job_type: str, policy: JobPolicy, lease: timedelta) -> Iterator[Violation]:
    horizon = Value("running_stale_after", policy.lifecycle.running_stale_after, job_type)
    if policy.timeout > policy.lifecycle.running_stale_after:
        yield Violation(
            Value("timeout", policy.timeout, job_type),
            horizon,
            "the time-out may not lie beyond the lease horizon, at which a running job is given up",
            f"lower the timeout of {job_type}, or raise its lifecycle's running_stale_after",
        )
    if lease >= policy.lifecycle.running_stale_after:
        yield Violation(
            Value("lease", lease, "the worker"),
            horizon,
            "a lost worker must be noticed before its jobs are given up as stale",
            f"lower DULY_WORKER_LEASE, or raise the running_stale_after of {job_type}",
        )


def _forgotten_keys(job_type: str, policy: JobPolicy) -> Iterator[Violation]:
    horizon = retry_horizon(policy)
    if horizon >= policy.ledger_ttl:
        yield Violation(
            Value("ledger_ttl", policy.ledger_ttl, job_type),
            Value("retry horizon", horizon, job_type),
            f"after {policy.retry.max_attempts} attempts to the time-out and their longest waits "
            "the idempotency key would be forgotten while the job is still tried",
            f"raise the ledger_ttl of {job_type}, or lower its timeout or max_attempts",
        )


def _kept(job_type: str, policy: JobPolicy, keep: Retention) -> Iterator[Violation]:
    running = policy.lifecycle.running_stale_after
    active = _sum(policy.lifecycle.queued_stale_after, running)
    for kind, kept, name, needed in (
        ("jobs", keep.jobs, "queued_stale_after + running_stale_after", active),
        ("events", keep.events, "queued_stale_after + running_stale_after", active),
        ("partial_results", keep.partial_results, "running_stale_after", running),
    ):
        if kept <= needed:
            yield Violation(
                Value(f"keep_{kind}", kept),
                Value(name, needed, job_type),
                f"{kind.replace('_', ' ')} must be kept longer than a job of this type may be alive",
                f"raise DULY_KEEP_{kind.upper()}, or lower the lifecycle's times of {job_type}",
            )


def _bridge(job_type: str, policy: JobPolicy, bridged: Set[str] | None) -> Iterator[Violation]:
    if policy.lifecycle.requires_failed_bridge and bridged is not None and job_type not in bridged:
        yield Violation(
            Value("requires_failed_bridge", True, job_type),
            Value("on_failed", None, job_type),
            "whoever must be told of failures needs a callback",
            f"declare {job_type} with on_failed=..., or do not require the bridge",
        )


def _path_to_the_truth(job_type: str, policy: JobPolicy, bridged: Set[str] | None) -> Iterator[Violation]:
    """A covered job ends truly by its own callback, by the reconciler, or by both."""
    if not policy.lifecycle.supports_reconciliation and bridged is not None and job_type not in bridged:
        yield Violation(
            Value("supports_reconciliation", False, job_type),
            Value("on_failed", None, job_type),
            "a covered job type needs reconciliation, a callback for its failures, or both",
            f"declare {job_type} with on_failed=..., let it be reconciled, or set covered=False",
        )


def _sum(*parts: timedelta) -> timedelta:
    try:
        return sum(parts, timedelta(0))
    except OverflowError:
        return timedelta.max
