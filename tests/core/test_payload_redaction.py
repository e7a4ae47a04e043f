"""What is hidden stays hidden, and stays what it was."""

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


def test_credentials_and_personal_data_are_not_shown() -> None:
    shown = redact_payload(STORED)
    assert "@" not in json.dumps(shown)
    assert shown["note"] == "call [email] today"
    assert shown["access_token"] == "[redacted]"
    assert shown["empty_token"] == ""
    assert (shown["region"], shown["count"]) == ("DE", 3)
    assert len(shown) == len(STORED)


def test_what_is_left_as_it_is_keeps_its_stored_value() -> None:
    assert restore_redacted(redact_payload(STORED), STORED) == STORED
    typed = redact_payload(STORED)
    typed["region"] = "AT"
    typed["people"][1]["age"] = 42
    del typed["count"]
    found = restore_redacted(typed, STORED)
    assert found["people"] == [STORED["people"][0], {"mail": "cy@example.org", "age": 42}]
    assert (found["to"], found["access_token"]) == ("ada@example.org", {"ref": 7})
    assert found["region"] == "AT"
    assert "count" not in found
    assert found["by bob@example.org"] == 2


def test_a_hidden_value_can_be_replaced() -> None:
    typed = {**redact_payload(STORED), "to": "eve@example.org", "access_token": None}
    found = restore_redacted(typed, STORED)
    assert (found["to"], found["access_token"]) == ("eve@example.org", None)


def test_items_that_were_taken_out_take_nothing_else_with_them() -> None:
    typed = redact_payload(STORED)
    typed["people"] = [typed["people"][1]]
    assert restore_redacted(typed, STORED)["people"] == [STORED["people"][1]]
    typed["people"] = [*redact_payload(STORED)["people"], {"mail": "new@example.org", "age": 1}]
    assert restore_redacted(typed, STORED)["people"][:2] == STORED["people"]


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
def test_a_placeholder_that_stands_for_nothing_is_refused(change: dict[str, Any], field: str) -> None:
    with pytest.raises(ContractError) as refused:
        restore_redacted({**redact_payload(STORED), **change}, STORED)
    assert refused.value.field == field


def test_true_is_not_one() -> None:
    assert json.dumps(restore_redacted({"n": True}, {"n": 1})) == '{"n": true}'
    assert restore_redacted([1], {"n": 1}) == [1]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.emails(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.emails(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_nothing_is_lost_between_showing_and_sending_back(stored: Any) -> None:
    shown = json.loads(json.dumps(redact_payload(stored)))
    assert restore_redacted(shown, stored) == stored
