"""Times and numbers are parsed strictly, as the OpenAPI document describes them."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import Field, TypeAdapter, ValidationError

from duly.http.params import NUMERIC, Timestamp

TIME: TypeAdapter[Any] = TypeAdapter(Timestamp)
NUMBER: TypeAdapter[Any] = TypeAdapter(Annotated[int, Field(ge=1), NUMERIC])


@pytest.mark.parametrize(
    ("value", "in_utc"),
    [
        ("2026-01-31T08:00:00+02:00", "2026-01-31T06:00:00Z"),
        ("2026-01-31t08:00:00.5z", "2026-01-31T08:00:00.500000Z"),
        ("1447-07-04T22:21:15+22:53", "1447-07-03T23:28:15Z"),  # an offset beyond the range of PostgreSQL
        ("0001-01-01T00:00:00+01:00", "0001-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59-01:00", "9999-12-31T23:59:59.999999Z"),
    ],
)
def test_a_time_is_converted_to_utc(value: str, in_utc: str) -> None:
    assert TIME.dump_json(TIME.validate_python(value)).decode() == f'"{in_utc}"'


@pytest.mark.parametrize(
    "value",
    ["0", "1577836800", 0, 0.5, True, "2026-01-31", "2026-01-31T08:00:00",
     "2026-02-30T00:00:00Z", ""],
)  # fmt: skip
def test_a_time_without_a_zone_is_refused(value: object) -> None:
    with pytest.raises(ValidationError):
        TIME.validate_python(value)


def test_an_integer_is_neither_a_text_nor_a_boolean() -> None:
    assert [NUMBER.validate_python(value) for value in (1, 2.0)] == [1, 2]
    for invalid in (True, "1", 1.5, 0, None):
        with pytest.raises(ValidationError):
            NUMBER.validate_python(invalid)
    assert NUMBER.json_schema() == {"minimum": 1, "type": "integer"}
    assert TIME.json_schema() == {"format": "date-time", "type": "string"}
