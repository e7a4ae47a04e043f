"""A payload is JSON that can be stored, of bounded size and depth."""

from __future__ import annotations

import contextlib
import json
import math
import tracemalloc
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from duly.core.errors import PayloadRefused
from duly.core.payload import MAX_PAYLOAD_BYTES, MAX_PAYLOAD_DEPTH, check_payload, parse_payload

plain = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
names = st.sampled_from(["a", "name", "token_count", "secret_ref", "keys", "größe", "items"])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | plain,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=20,
)


def nested(levels: int, leaf: Any = 1) -> Any:
    for level in range(levels):
        leaf = [leaf] if level % 2 else {"a": leaf}
    return leaf


@given(values)
def test_json_of_small_depth_is_accepted_and_round_trips(value: Any) -> None:
    text = json.dumps(value)
    check_payload(value, len(text))
    assert parse_payload(text) == value
    assert parse_payload(json.dumps(value, ensure_ascii=False).encode()) == value


@given(st.text() | st.binary())
@example("[" * 100_000)
@example('{"a":' * 100_000)
@example("1" * 5000)
@example(b'"\xff"')
@example("")
def test_any_input_is_parsed_or_refused(text: str | bytes) -> None:
    with contextlib.suppress(PayloadRefused):
        parse_payload(text)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_non_finite_numbers_are_not_parsed(number: str) -> None:
    with pytest.raises(PayloadRefused, match="not JSON"):
        parse_payload(f'{{"a": [{number}]}}')


@pytest.mark.parametrize(
    "text", ['{"a": 1, "a": 2}', '[{"x": {"b": 0, "a": 1, "a": 1}}]', r'{"a": 1, "\u0061": 2}']
)
def test_a_duplicate_key_is_refused_by_name(text: str) -> None:
    with pytest.raises(PayloadRefused, match="duplicate key 'a'"):
        parse_payload(text)


@pytest.mark.timeout(20)
def test_a_duplicate_among_many_keys_is_found_quickly() -> None:
    keys = [f'"k{i}":0' for i in range(200_000)]
    with pytest.raises(PayloadRefused, match="duplicate key 'k199999'"):
        parse_payload("{" + ",".join([*keys, keys[-1]]) + "}")


def test_a_payload_may_be_as_large_as_the_limit() -> None:
    check_payload({}, MAX_PAYLOAD_BYTES)
    with pytest.raises(PayloadRefused, match="262145 bytes, 262144 allowed"):
        check_payload({}, MAX_PAYLOAD_BYTES + 1)


@pytest.mark.parametrize("leaf", [1, "text", [], {}])
def test_a_payload_may_be_32_levels_deep_and_no_deeper(leaf: Any) -> None:
    check_payload(nested(32, leaf), 100)
    with pytest.raises(PayloadRefused, match=f"deeper than {MAX_PAYLOAD_DEPTH}"):
        check_payload(nested(33, leaf), 100)


def test_an_extremely_deep_payload_is_refused_without_a_crash() -> None:
    with pytest.raises(PayloadRefused):
        check_payload(nested(50_000), 100)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_non_finite_number_is_refused_with_its_path(number: float) -> None:
    with pytest.raises(PayloadRefused) as refused:
        check_payload({"rows": [{"x": 1.0}, {"x": number}]}, 10)
    assert refused.value.field == "payload.rows[1].x"


def test_an_integer_that_python_could_not_parse_is_refused_with_its_path() -> None:
    check_payload({"rows": [10**4300 - 1, 1 - 10**4300]}, 10)
    for number in (10**4300, -(10**4300)):
        with pytest.raises(PayloadRefused, match="4300 digits") as refused:
            check_payload({"rows": [1, number]}, 10)
        assert refused.value.field == "payload.rows[1]"


@pytest.mark.parametrize("payload", [{"a": "x\0y"}, {"x\0y": 1}, ["\0"], {"a": {"\0": None}}])
def test_a_nul_is_refused_in_values_and_in_keys(payload: Any) -> None:
    with pytest.raises(PayloadRefused, match="NUL"):
        check_payload(payload, 10)


@pytest.mark.parametrize("payload", [{"a": "\ud83d"}, {"\ude00": 1}, parse_payload(r'["\ud800"]')])
def test_lone_surrogates_are_refused_because_they_cannot_be_stored(payload: Any) -> None:
    with pytest.raises(PayloadRefused, match="surrogate") as refused:
        check_payload(payload, 10)
    str(refused.value).encode()


def test_memory_does_not_grow_with_the_length_of_parent_keys() -> None:
    payload = {"k" * 40_000: [0] * 4_000}
    tracemalloc.start()
    try:
        check_payload(payload, 50_000)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
