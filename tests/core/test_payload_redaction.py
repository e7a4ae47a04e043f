"""Redacted payloads hide secrets, and their stored values are restored after editing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.core.errors import ContractError
from duly.core.redaction import redact_payload, restore_redacted

STORED: dict[str, Any] = {
    "to": "ada@example.org",
    "note": "call ada@example.org today",
    "region": "DE",
    "count": 3,
    "access_token": {"ref": 7},
    "empty_token": "",
    "people": [{"mail": "bob@example.org", "age": 30}, {"mail": "cy@example.org", "age": 41}],
    "by ada@example.org": 1,
    "by bob@example.org": 2,
}


def test_credentials_and_personal_data_are_redacted() -> None:
    redacted = redact_payload(STORED)
    assert "@" not in json.dumps(redacted)
    assert redacted["note"] == "call [email] today"
    assert redacted["access_token"] == "[redacted]"
    assert redacted["empty_token"] == ""
    assert (redacted["region"], redacted["count"]) == ("DE", 3)
    assert len(redacted) == len(STORED)


def test_unedited_values_are_restored() -> None:
    assert restore_redacted(redact_payload(STORED), STORED) == STORED
    edited = redact_payload(STORED)
    edited["region"] = "AT"
    edited["people"][1]["age"] = 42
    del edited["count"]
    restored = restore_redacted(edited, STORED)
    assert restored["people"] == [STORED["people"][0], {"mail": "cy@example.org", "age": 42}]
    assert (restored["to"], restored["access_token"]) == ("ada@example.org", {"ref": 7})
    assert restored["region"] == "AT"
    assert "count" not in restored
    assert restored["by bob@example.org"] == 2


def test_a_redacted_value_can_be_replaced() -> None:
    edited = {**redact_payload(STORED), "to": "eve@example.org", "access_token": None}
    restored = restore_redacted(edited, STORED)
    assert (restored["to"], restored["access_token"]) == ("eve@example.org", None)


def test_removing_or_adding_items_restores_the_remaining_ones() -> None:
    edited = redact_payload(STORED)
    edited["people"] = [edited["people"][1]]
    assert restore_redacted(edited, STORED)["people"] == [STORED["people"][1]]
    edited["people"] = [*redact_payload(STORED)["people"], {"mail": "new@example.org", "age": 1}]
    assert restore_redacted(edited, STORED)["people"][:2] == STORED["people"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"copy": "[email]"}, "payload.copy"),
        ({"note": "call [email] tomorrow"}, "payload.note"),
        ({"region": "[redacted]"}, "payload.region"),
        ({"people": [{"mail": "[email]", "age": 1}]}, "payload.people.0"),
        ({"[number]": 1}, "payload.[number]"),
    ],
)
def test_a_placeholder_without_a_stored_value_is_refused(change: dict[str, Any], field: str) -> None:
    with pytest.raises(ContractError) as refused:
        restore_redacted({**redact_payload(STORED), **change}, STORED)
    assert refused.value.field == field


def test_true_is_not_restored_as_one() -> None:
    assert json.dumps(restore_redacted({"n": True}, {"n": 1})) == '{"n": true}'
    assert restore_redacted([1], {"n": 1}) == [1]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.emails(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.emails(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_redaction_and_restoration_round_trip(stored: Any) -> None:
    redacted = json.loads(json.dumps(redact_payload(stored)))
    assert restore_redacted(redacted, stored) == stored
