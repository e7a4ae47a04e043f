"""Retry delays, and the default policy of each category."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from duly.core.outcome import parse_retry_after
from duly.core.policy import CATEGORY_POLICIES, QUEUES, Category, RetryPolicy
from tests.core.strategies import chances, durations

NEARLY_ONE = 1 - 2**-53
SECOND, MINUTE, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=1)
TICK = timedelta(microseconds=1)

failures = st.integers(1, 10**9)
exponential = st.builds(RetryPolicy, base=durations, cap=durations)

EXPECTED = {
    "default": ("q:default", 5, 5 * MINUTE, 7 * DAY),
    "notification": ("q:notifications", 10, 30 * MINUTE, 7 * DAY),
    "audit": ("q:default", 5, 5 * MINUTE, 7 * DAY),
    "planning": ("q:planning", 3, 2 * MINUTE, 30 * DAY),
    "transfer": ("q:exports", 5, 10 * MINUTE, 30 * DAY),
    "maintenance": ("q:maintenance", 5, 5 * MINUTE, 7 * DAY),
}


@given(exponential, failures, chances)
def test_a_delay_is_never_negative_and_never_above_the_cap(
    policy: RetryPolicy, failed: int, chance: float
) -> None:
    assert timedelta(0) <= policy.delay(failed, chance) <= policy.cap


@given(exponential, failures)
def test_the_jitter_ranges_from_zero_to_the_ceiling(policy: RetryPolicy, failed: int) -> None:
    ceiling = min(policy.cap // TICK, policy.base // TICK * 2 ** min(failed - 1, 64)) * TICK
    assert policy.delay(failed, 0.0) == timedelta(0)
    assert abs(policy.delay(failed, NEARLY_ONE) - ceiling) <= TICK
    assert abs(policy.delay(failed, 0.5) - ceiling / 2) <= TICK


@given(exponential, failures, failures, chances)
def test_more_failures_never_shorten_the_delay(
    policy: RetryPolicy, one: int, other: int, chance: float
) -> None:
    fewer, more = sorted((one, other))
    assert policy.delay(fewer, chance) <= policy.delay(more, chance)


@pytest.mark.parametrize(("failed", "ceiling"), [(1, 5), (2, 10), (3, 20), (6, 160), (7, 300), (10**12, 300)])
def test_the_default_delay_doubles_from_five_seconds_to_five_minutes(failed: int, ceiling: int) -> None:
    assert abs(RetryPolicy().delay(failed, NEARLY_ONE) - ceiling * SECOND) <= TICK


@pytest.mark.parametrize(("failed", "delay"), [(1, 60), (2, 300), (3, 1800), (4, 1800), (1000, 1800)])
@pytest.mark.parametrize("chance", [0.0, 0.5, NEARLY_ONE])
def test_a_document_job_follows_its_list_of_delays_and_repeats_the_last(
    failed: int, delay: int, chance: float
) -> None:
    assert CATEGORY_POLICIES[Category.DOCUMENT].retry.delay(failed, chance) == delay * SECOND


@pytest.mark.parametrize("category", EXPECTED)
def test_each_category_has_its_default_policy(category: str) -> None:
    policy = CATEGORY_POLICIES[Category(category)]
    retry = policy.retry
    assert policy.category == category
    assert (policy.queue, retry.max_attempts, retry.cap, policy.ledger_ttl) == EXPECTED[category]
    assert (retry.base, retry.delays) == (5 * SECOND, ())


def test_a_document_job_has_four_attempts_and_a_ledger_ttl_of_30_days() -> None:
    policy = CATEGORY_POLICIES[Category.DOCUMENT]
    assert (policy.queue, policy.retry.max_attempts, policy.ledger_ttl) == ("q:default", 4, 30 * DAY)


def test_every_category_has_a_default_policy_with_an_existing_queue() -> None:
    assert set(CATEGORY_POLICIES) == set(Category) == {*EXPECTED, "document"}
    assert {policy.queue for policy in CATEGORY_POLICIES.values()} <= set(QUEUES)


def test_only_maintenance_and_notifications_are_schedulable_by_default() -> None:
    assert {c for c, policy in CATEGORY_POLICIES.items() if policy.schedulable} == {
        "maintenance",
        "notification",
    }


@pytest.mark.parametrize("category", list(Category))
def test_default_runtimes_are_below_the_timeout_and_timeouts_below_the_stale_horizon(
    category: Category,
) -> None:
    policy = CATEGORY_POLICIES[category]
    assert policy.lifecycle.expected_max_runtime < policy.timeout <= policy.lifecycle.running_stale_after


@pytest.mark.parametrize(
    "invalid",
    [
        {"max_attempts": 0},
        {"max_attempts": 101},
        {"base": timedelta(0)},
        {"cap": -SECOND},
        {"delays": (SECOND, timedelta(0))},
        {"jitter": False},
    ],
)
def test_an_invalid_retry_policy_is_refused_by_field(invalid: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match=next(iter(invalid))):
        RetryPolicy(**invalid)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("5", 5),
        (" 0.5 ", 0.5),
        ("9" * 5000, 24 * 3600),
        ("Wed, 21 Oct 2026 07:28:30 GMT", 30),
        ("Wed, 21 Oct 2026 07:28:30 -0000", 30),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0),
        ("Wed, 21 Oct 2099 07:28:00 GMT", 24 * 3600),
        *dict.fromkeys(
            ("", "-3", "nan", "inf", "1e999", "soon", "\N{SUPERSCRIPT TWO}", "Mon, 99 Foo 2026"), None
        ).items(),
    ],
)
def test_retry_after_is_seconds_or_a_date_up_to_a_day(header: str, seconds: float | None) -> None:
    assert parse_retry_after(header, datetime(2026, 10, 21, 7, 28, tzinfo=UTC)) == seconds
