"""Event types of jobs, and their names in the audit trail and on the event bus."""

from __future__ import annotations

import pytest

from duly.core.states import BUS_NAMES, TERMINAL_EVENT, EventType, Status, audit_event_name

EVENT_TYPES = [
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


def test_the_event_types_are_the_listed_ones() -> None:
    assert [event.value for event in EventType] == EVENT_TYPES


@pytest.mark.parametrize("event_type", EVENT_TYPES)
def test_every_event_type_has_one_name_in_the_audit_trail(event_type: str) -> None:
    renamed = {"job.queued": "job.enqueued", "job.completed": "job.succeeded"}
    assert audit_event_name(EventType(event_type)) == renamed.get(event_type, event_type)


def test_no_two_event_types_share_an_audit_name() -> None:
    assert len({audit_event_name(event) for event in EventType}) == len(EventType)


def test_the_audit_trail_has_every_required_event_name() -> None:
    required = {
        "job.enqueued",
        "job.started",
        "job.succeeded",
        "job.failed",
        "job.deadlettered",
        "job.retried",
    }
    assert required <= {audit_event_name(event) for event in EventType}


def test_the_bus_publishes_six_event_types_of_the_analyze_application() -> None:
    names = {
        f"api.analyze.job.{event_type}"
        for event_type in ["queued", "started", "partial", "completed", "failed", "canceled"]
    }
    assert set(BUS_NAMES.values()) == names
    assert all(name.endswith(event.value) for event, name in BUS_NAMES.items())


def test_each_terminal_status_has_the_event_of_its_name() -> None:
    assert {status: event.value for status, event in TERMINAL_EVENT.items()} == {
        Status.COMPLETED: "job.completed",
        Status.FAILED: "job.failed",
        Status.CANCELED: "job.canceled",
    }
