"""The facts of a job, under each of the names by which they are published."""

from __future__ import annotations

import pytest

from duly.core.states import BUS_NAMES, TERMINAL_EVENT, EventType, Status, audit_event_name

FACTS = [
    "job.queued",
    "job.started",
    "job.progressed",
    "job.partial",
    "job.retried",
    "job.snoozed",
    "job.completed",
    "job.failed",
    "job.deadlettered",
    "job.cancel_requested",
    "job.canceled",
    "job.lease_lost",
    "job.reconciled",
    "job.replayed",
]


def test_the_facts_are_the_written_ones() -> None:
    assert [event.value for event in EventType] == FACTS


@pytest.mark.parametrize("fact", FACTS)
def test_every_fact_has_one_name_in_the_audit_trail(fact: str) -> None:
    renamed = {"job.queued": "job.enqueued", "job.completed": "job.succeeded"}
    assert audit_event_name(EventType(fact)) == renamed.get(fact, fact)


def test_no_two_facts_share_an_audit_name() -> None:
    assert len({audit_event_name(event) for event in EventType}) == len(EventType)


def test_the_audit_trail_knows_every_name_it_must_emit() -> None:
    required = {
        "job.enqueued",
        "job.started",
        "job.succeeded",
        "job.failed",
        "job.deadlettered",
        "job.retried",
    }
    assert required <= {audit_event_name(event) for event in EventType}


def test_the_bus_carries_the_six_facts_of_the_analyze_application() -> None:
    names = {
        f"api.analyze.job.{fact}"
        for fact in ["queued", "started", "partial", "completed", "failed", "canceled"]
    }
    assert set(BUS_NAMES.values()) == names
    assert all(name.endswith(event.value) for event, name in BUS_NAMES.items())


def test_each_end_has_the_event_of_its_name() -> None:
    assert {status: event.value for status, event in TERMINAL_EVENT.items()} == {
        Status.COMPLETED: "job.completed",
        Status.FAILED: "job.failed",
        Status.CANCELED: "job.canceled",
    }
