"""Job policies survive storage as JSON, and invalid ones are refused."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from duly.core.policy import CATEGORY_POLICIES, Category, JobPolicy, LifecyclePolicy
from tests.core.strategies import policies as retry_policies

durations = st.timedeltas(timedelta(microseconds=1), timedelta(days=3650))
lifecycles = st.builds(
    LifecyclePolicy,
    covered=st.booleans(),
    queued_stale_after=durations,
    running_stale_after=durations,
    expected_max_runtime=durations,
    requires_failed_bridge=st.booleans(),
    supports_reconciliation=st.booleans(),
)
policies = st.builds(
    JobPolicy,
    category=st.sampled_from(Category),
    queue=st.from_regex(r"q:[a-z][a-z0-9_-]{0,47}", fullmatch=True).filter("q:deadletter".__ne__),
    priority=st.integers(-1000, 1000),
    retry=retry_policies,
    lifecycle=lifecycles,
    timeout=durations,
    ledger_ttl=durations,
    schedulable=st.booleans(),
)


@given(policies)
def test_a_policy_round_trips_through_json(policy: JobPolicy) -> None:
    assert JobPolicy.model_validate_json(policy.as_json) == policy


def test_a_stored_policy_has_durations_in_seconds() -> None:
    stored = json.loads(CATEGORY_POLICIES[Category.PLANNING].as_json)
    assert (stored["timeout"], stored["retry"]["cap"], stored["ledger_ttl"]) == (3600, 120, 2592000)


@given(policies, st.integers(-1000, 1000))
def test_a_changed_copy_is_stored_as_changed(policy: JobPolicy, priority: int) -> None:
    before = policy.as_json
    changed = policy.model_copy(update={"priority": priority, "queue": "q:critical"})
    stored = json.loads(changed.as_json)
    assert (stored["priority"], stored["queue"]) == (priority, "q:critical")
    assert policy.as_json == before


def test_the_dead_letter_queue_cannot_be_chosen() -> None:
    with pytest.raises(ValidationError, match="choose another queue"):
        JobPolicy(queue="q:deadletter")


@pytest.mark.parametrize(
    "name",
    [
        "",
        "q:",
        "default",
        "Q:default",
        "q:Default",
        "q:1st",
        "q:a b",
        "q:ü",
        "q:a\n",
        "q:a:b",
        "q:" + "a" * 49,
    ],
)
def test_a_bad_queue_name_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="queue"):
        JobPolicy(queue=name)


@pytest.mark.parametrize("name", ["q:a", "q:my-own_queue2", "q:" + "a" * 48])
def test_a_custom_queue_is_accepted(name: str) -> None:
    assert JobPolicy(queue=name).queue == name


@pytest.mark.parametrize(
    "invalid", [{"priority": 1001}, {"priority": -1001}, {"timeout": 0}, {"ledger_ttl": -1}]
)
def test_a_value_out_of_bounds_is_refused_by_name(invalid: dict[str, int]) -> None:
    with pytest.raises(ValidationError, match=next(iter(invalid))):
        JobPolicy.model_validate(invalid)


def test_a_misspelled_field_is_refused() -> None:
    with pytest.raises(ValidationError, match="max_attemps"):
        JobPolicy.model_validate({"retry": {"max_attemps": 3}})


def test_a_policy_cannot_be_changed() -> None:
    policy = JobPolicy()
    with pytest.raises(ValidationError, match="frozen"):
        policy.priority = 5  # type: ignore[misc]
    with pytest.raises(ValidationError, match="frozen"):
        policy.retry.max_attempts = 5  # type: ignore[misc]
    with pytest.raises(TypeError):
        CATEGORY_POLICIES[Category.AUDIT] = policy  # type: ignore[index]
