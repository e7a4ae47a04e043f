"""Contradictory durations and policies are reported by name."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.core.errors import ConfigurationError
from duly.core.invariants import RunConditions, lease_violations, raise_violations, retry_horizon, violations
from duly.core.policy import CATEGORY_POLICIES, JobPolicy, LifecyclePolicy, Retention, RetryPolicy

SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)
CONDITIONS = RunConditions(
    lease=30 * SECOND, heartbeat=5 * SECOND, retention=Retention(), with_callbacks=frozenset()
)


def policy(*, timeout: timedelta = HOUR, **choices: Any) -> JobPolicy:
    lifecycle = {name: choices.pop(name) for name in tuple(choices) if name in LifecyclePolicy.model_fields}
    lifecycle.setdefault("expected_max_runtime", timeout / 2)
    return JobPolicy(timeout=timeout, lifecycle=LifecyclePolicy(**lifecycle), **choices)


def violation_pairs(job_policy: JobPolicy, **conditions: Any) -> list[tuple[str, str]]:
    """Return the pairs of values that contradict each other."""
    fields = {name: getattr(CONDITIONS, name) for name in RunConditions.__dataclass_fields__}
    return [
        (str(one.one), str(one.other))
        for one in violations({"docs.extract": job_policy}, RunConditions(**{**fields, **conditions}))
    ]


@pytest.mark.parametrize("category", CATEGORY_POLICIES)
def test_the_defaults_of_every_category_have_no_violations(category: Any) -> None:
    assert violations({"a.b": CATEGORY_POLICIES[category]}, CONDITIONS) == []


def test_a_timeout_beyond_the_stale_horizon_is_reported_with_both_values() -> None:
    [one] = violations({"docs.extract": policy(timeout=7 * HOUR)}, CONDITIONS)
    assert str(one.one) == "timeout of docs.extract = 7:00:00"
    assert str(one.other) == "running_stale_after of docs.extract = 6:00:00"
    assert "must not exceed running_stale_after" in one.rule
    assert "running_stale_after" in one.fix


def test_a_timeout_may_be_as_long_as_the_horizon_and_no_longer() -> None:
    assert violation_pairs(policy(timeout=6 * HOUR)) == []
    assert len(violation_pairs(policy(timeout=6 * HOUR + timedelta.resolution))) == 1


@pytest.mark.parametrize("timeout", [timedelta(milliseconds=100), 10 * SECOND, HOUR])
def test_the_expected_runtime_must_stay_below_90_percent_of_the_timeout(timeout: timedelta) -> None:
    just_too_long = policy(timeout=timeout, expected_max_runtime=timeout * 9 / 10)
    fitting = policy(timeout=timeout, expected_max_runtime=timeout * 9 / 10 - timedelta.resolution)
    assert violation_pairs(just_too_long) == [
        (
            f"expected_max_runtime of docs.extract = {timeout * 9 / 10}",
            f"timeout of docs.extract = {timeout}",
        )
    ]
    assert violation_pairs(fitting) == []


def test_a_lease_must_be_shorter_than_the_stale_horizon() -> None:
    short = policy(timeout=20 * SECOND, running_stale_after=30 * SECOND)
    assert violation_pairs(short) == [
        ("lease of the worker = 0:00:30", "running_stale_after of docs.extract = 0:00:30")
    ]
    assert violation_pairs(short, lease=29 * SECOND) == []


def test_a_lease_must_last_three_heartbeats() -> None:
    assert list(lease_violations(15 * SECOND, 5 * SECOND)) == []
    [one] = lease_violations(15 * SECOND, 5 * SECOND + timedelta.resolution)
    assert (one.one.name, one.other.name) == ("heartbeat", "lease")


def test_the_ledger_ttl_must_exceed_the_retry_horizon() -> None:
    retry = RetryPolicy(max_attempts=3, delays=(HOUR, 2 * HOUR))
    retried = policy(retry=retry, ledger_ttl=6 * HOUR)
    assert retry_horizon(retried) == 6 * HOUR
    assert violation_pairs(retried) == [
        ("ledger_ttl of docs.extract = 6:00:00", "retry horizon of docs.extract = 6:00:00")
    ]
    assert violation_pairs(policy(retry=retry, ledger_ttl=6 * HOUR + SECOND)) == []


def test_the_retry_horizon_adds_up_the_full_delays() -> None:
    retry = RetryPolicy(max_attempts=4, base=5 * SECOND, cap=12 * SECOND)
    assert retry_horizon(policy(timeout=SECOND, retry=retry)) == (4 + 5 + 10 + 12) * SECOND
    assert retry_horizon(policy(timeout=SECOND, retry=RetryPolicy(max_attempts=1))) == SECOND


@pytest.mark.parametrize("kind", ["jobs", "events", "partial_results"])
def test_retention_must_exceed_the_lifetime_of_a_job(kind: str) -> None:
    needed = 6 * HOUR if kind == "partial_results" else 30 * HOUR
    short = Retention.model_construct(**{**dict(Retention()), kind: needed})
    [(retention, lifetime)] = violation_pairs(policy(), retention=short)
    assert retention == f"keep_{kind} = {needed}"
    assert lifetime.endswith(f"running_stale_after of docs.extract = {needed}")
    longer = Retention.model_construct(**{**dict(Retention()), kind: needed + SECOND})
    assert violation_pairs(policy(), retention=longer) == []


def test_a_job_type_that_requires_a_failure_callback_must_have_one() -> None:
    unnotified = policy(requires_failed_bridge=True)
    assert violation_pairs(unnotified) == [
        ("requires_failed_bridge of docs.extract = True", "on_failed of docs.extract = None")
    ]
    assert violation_pairs(unnotified, with_callbacks={"docs.extract"}) == []
    assert violation_pairs(unnotified, with_callbacks=None) == [], "the callbacks are unknown"


def test_a_covered_job_type_must_support_reconciliation_or_have_a_callback() -> None:
    unsupported = policy(supports_reconciliation=False)
    assert violation_pairs(unsupported) == [
        ("supports_reconciliation of docs.extract = False", "on_failed of docs.extract = None")
    ]
    assert violation_pairs(unsupported, with_callbacks={"docs.extract"}) == []
    assert violation_pairs(policy(supports_reconciliation=False, covered=False)) == []


def test_an_uncovered_job_type_has_no_staleness_violations() -> None:
    assert violation_pairs(policy(timeout=7 * HOUR, covered=False)) == []
    assert (
        violation_pairs(policy(running_stale_after=SECOND, queued_stale_after=900 * DAY, covered=False)) == []
    )
    # Its timeout still applies.
    assert len(violation_pairs(policy(covered=False, expected_max_runtime=HOUR))) == 1


def test_all_violations_are_raised_together_under_the_field_of_the_first() -> None:
    raise_violations([])
    bad = {"b.late": policy(timeout=7 * HOUR), "a.unnotified": policy(requires_failed_bridge=True)}
    with pytest.raises(ConfigurationError) as refused:
        raise_violations(violations(bad, CONDITIONS))
    message = str(refused.value)
    assert refused.value.field == "requires_failed_bridge"
    for part in ("a.unnotified", "timeout of b.late = 7:00:00", "running_stale_after of b.late = 6:00:00"):
        assert part in message
    assert message.count("b.late") == 3, "both values and the fix"


_ANY = st.timedeltas(min_value=timedelta.resolution, max_value=timedelta(days=18_250))


@given(
    _ANY,
    _ANY,
    _ANY,
    _ANY,
    st.builds(RetryPolicy, max_attempts=st.integers(1, 100), base=_ANY, cap=_ANY),
)
def test_extreme_durations_do_not_overflow(
    timeout: timedelta, stale: timedelta, lease: timedelta, ttl: timedelta, retry: RetryPolicy
) -> None:
    job_policy = JobPolicy(
        timeout=timeout,
        retry=retry,
        ledger_ttl=ttl,
        lifecycle=LifecyclePolicy(running_stale_after=stale, queued_stale_after=stale),
    )
    pairs = {
        (one.one.name, one.other.name)
        for one in violations({"a": job_policy}, RunConditions(lease, lease / 9, Retention()))
    }
    assert (("timeout", "running_stale_after") in pairs) == (timeout > stale)
    assert (("lease", "running_stale_after") in pairs) == (lease >= stale)
