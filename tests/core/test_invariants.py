"""Times that cannot go together are found, by name."""

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
UNDER = RunConditions(
    lease=30 * SECOND, heartbeat=5 * SECOND, retention=Retention(), with_callbacks=frozenset()
)


def policy(*, timeout: timedelta = HOUR, **choices: Any) -> JobPolicy:
    lifecycle = {name: choices.pop(name) for name in tuple(choices) if name in LifecyclePolicy.model_fields}
    lifecycle.setdefault("expected_max_runtime", timeout / 2)
    return JobPolicy(timeout=timeout, lifecycle=LifecyclePolicy(**lifecycle), **choices)


def found(given: JobPolicy, **under: Any) -> list[tuple[str, str]]:
    """Which pairs of values go against each other."""
    fields = {name: getattr(UNDER, name) for name in RunConditions.__dataclass_fields__}
    return [
        (str(one.one), str(one.other))
        for one in violations({"docs.extract": given}, RunConditions(**{**fields, **under}))
    ]


@pytest.mark.parametrize("category", CATEGORY_POLICIES)
def test_the_defaults_of_every_category_can_be_kept(category: Any) -> None:
    assert violations({"a.b": CATEGORY_POLICIES[category]}, UNDER) == []


def test_a_timeout_beyond_the_lease_horizon_is_named_with_both_values() -> None:
    [one] = violations({"docs.extract": policy(timeout=7 * HOUR)}, UNDER)
    assert str(one.one) == "timeout of docs.extract = 7:00:00"
    assert str(one.other) == "running_stale_after of docs.extract = 6:00:00"
    assert "must not exceed running_stale_after" in one.rule
    assert "running_stale_after" in one.fix


def test_a_timeout_may_be_as_long_as_the_horizon_and_no_longer() -> None:
    assert found(policy(timeout=6 * HOUR)) == []
    assert len(found(policy(timeout=6 * HOUR + timedelta.resolution))) == 1


@pytest.mark.parametrize("timeout", [timedelta(milliseconds=100), 10 * SECOND, HOUR])
def test_the_expected_runtime_keeps_a_tenth_of_the_timeout_free(timeout: timedelta) -> None:
    just_too_long = policy(timeout=timeout, expected_max_runtime=timeout * 9 / 10)
    fitting = policy(timeout=timeout, expected_max_runtime=timeout * 9 / 10 - timedelta.resolution)
    assert found(just_too_long) == [
        (
            f"expected_max_runtime of docs.extract = {timeout * 9 / 10}",
            f"timeout of docs.extract = {timeout}",
        )
    ]
    assert found(fitting) == []


def test_a_lease_ends_before_a_job_is_stale() -> None:
    short = policy(timeout=20 * SECOND, running_stale_after=30 * SECOND)
    assert found(short) == [
        ("lease of the worker = 0:00:30", "running_stale_after of docs.extract = 0:00:30")
    ]
    assert found(short, lease=29 * SECOND) == []


def test_a_lease_holds_three_heartbeats() -> None:
    assert list(lease_violations(15 * SECOND, 5 * SECOND)) == []
    [one] = lease_violations(15 * SECOND, 5 * SECOND + timedelta.resolution)
    assert (one.one.name, one.other.name) == ("heartbeat", "lease")


def test_a_key_is_remembered_for_longer_than_its_job_is_tried() -> None:
    retry = RetryPolicy(max_attempts=3, delays=(HOUR, 2 * HOUR))
    tried = policy(retry=retry, ledger_ttl=6 * HOUR)
    assert retry_horizon(tried) == 6 * HOUR
    assert found(tried) == [
        ("ledger_ttl of docs.extract = 6:00:00", "retry horizon of docs.extract = 6:00:00")
    ]
    assert found(policy(retry=retry, ledger_ttl=6 * HOUR + SECOND)) == []


def test_the_horizon_of_growing_waits_takes_each_in_full() -> None:
    retry = RetryPolicy(max_attempts=4, base=5 * SECOND, cap=12 * SECOND)
    assert retry_horizon(policy(timeout=SECOND, retry=retry)) == (4 + 5 + 10 + 12) * SECOND
    assert retry_horizon(policy(timeout=SECOND, retry=RetryPolicy(max_attempts=1))) == SECOND


@pytest.mark.parametrize("kind", ["jobs", "events", "partial_results"])
def test_what_is_kept_outlives_the_jobs_it_is_of(kind: str) -> None:
    needed = 6 * HOUR if kind == "partial_results" else 30 * HOUR
    short = Retention.model_construct(**{**dict(Retention()), kind: needed})
    [(kept, lived)] = found(policy(), retention=short)
    assert kept == f"keep_{kind} = {needed}"
    assert lived.endswith(f"running_stale_after of docs.extract = {needed}")
    longer = Retention.model_construct(**{**dict(Retention()), kind: needed + SECOND})
    assert found(policy(), retention=longer) == []


def test_who_must_be_told_of_failures_has_a_callback() -> None:
    told = policy(requires_failed_bridge=True)
    assert found(told) == [
        ("requires_failed_bridge of docs.extract = True", "on_failed of docs.extract = None")
    ]
    assert found(told, with_callbacks={"docs.extract"}) == []
    assert found(told, with_callbacks=None) == [], "without the code there is no finding"


def test_a_covered_job_type_has_a_way_to_the_truth() -> None:
    alone = policy(supports_reconciliation=False)
    assert found(alone) == [
        ("supports_reconciliation of docs.extract = False", "on_failed of docs.extract = None")
    ]
    assert found(alone, with_callbacks={"docs.extract"}) == []
    assert found(policy(supports_reconciliation=False, covered=False)) == []


def test_what_is_not_covered_is_never_stale() -> None:
    assert found(policy(timeout=7 * HOUR, covered=False)) == []
    assert found(policy(running_stale_after=SECOND, queued_stale_after=900 * DAY, covered=False)) == []
    # Its time-out holds all the same.
    assert len(found(policy(covered=False, expected_max_runtime=HOUR))) == 1


def test_all_of_it_is_refused_at_once_under_the_name_of_the_first() -> None:
    raise_violations([])
    bad = {"b.late": policy(timeout=7 * HOUR), "a.told": policy(requires_failed_bridge=True)}
    with pytest.raises(ConfigurationError) as refused:
        raise_violations(violations(bad, UNDER))
    said = str(refused.value)
    assert refused.value.field == "requires_failed_bridge"
    for part in ("a.told", "timeout of b.late = 7:00:00", "running_stale_after of b.late = 6:00:00"):
        assert part in said
    assert said.count("b.late") == 3, "both values, and what to do"


_ANY = st.timedeltas(min_value=timedelta.resolution, max_value=timedelta(days=18_250))


@given(
    _ANY,
    _ANY,
    _ANY,
    _ANY,
    st.builds(RetryPolicy, max_attempts=st.integers(1, 100), base=_ANY, cap=_ANY),
)
def test_no_time_is_too_long_to_be_judged(
    timeout: timedelta, stale: timedelta, lease: timedelta, ttl: timedelta, retry: RetryPolicy
) -> None:
    given_policy = JobPolicy(
        timeout=timeout,
        retry=retry,
        ledger_ttl=ttl,
        lifecycle=LifecyclePolicy(running_stale_after=stale, queued_stale_after=stale),
    )
    pairs = {
        (one.one.name, one.other.name)
        for one in violations({"a": given_policy}, RunConditions(lease, lease / 9, Retention()))
    }
    assert (("timeout", "running_stale_after") in pairs) == (timeout > stale)
    assert (("lease", "running_stale_after") in pairs) == (lease >= stale)
