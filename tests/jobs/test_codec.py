"""The codec: arguments to payloads, payloads to arguments, and results."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict, Field, computed_field

from duly.core import errors
from duly.jobs.codec import Codec


class Address(BaseModel):
    city: str
    zip_code: int = Field(alias="zip")


class Order(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    number: UUID
    at: datetime
    to: Address
    weights: tuple[float, ...] = ()

    @computed_field
    @property
    def total(self) -> float:
        return sum(self.weights)


@dataclass
class Point:
    x: int
    y: int


def build(region: str, year: int = 2026) -> dict[str, int]:
    return {region: year}


def ship(order: Order, *, note: str | None = None) -> Point:
    return Point(0, 0)


def anything(value: Any) -> None: ...


def encode(*args: Any, **kwargs: Any) -> str:
    return Codec(build).encode(args, kwargs)


def refusal(value: Any) -> errors.ContractError:
    with pytest.raises(errors.ContractError) as caught:
        Codec(anything).encode((value,), {})
    assert caught.value.fix
    return caught.value


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [(("DE",), {}), ((), {"region": "DE"}), (("DE", 2026), {}), ((), {"year": 2026, "region": "DE"})],
)
def test_equal_calls_encode_to_the_same_payload(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    assert encode(*args, **kwargs) == '{"region":"DE","year":2026}'


def test_a_payload_is_compact_and_readable() -> None:
    assert encode("Köln 🚲") == '{"region":"Köln 🚲","year":2026}'


def test_nested_models_round_trip() -> None:
    codec = Codec(ship)
    order = Order(
        number=UUID(int=7),
        at=datetime(2026, 1, 1, tzinfo=UTC),
        to=Address(city="Köln", zip=50667),
        weights=(1.5, 2.0),
    )
    payload = json.loads(codec.encode((order,), {"note": "fragile"}))
    assert payload["order"]["to"] == {"city": "Köln", "zip": 50667}
    assert codec.decode(json.dumps(payload)) == {"order": order, "note": "fragile"}


def test_a_model_may_be_given_as_a_mapping() -> None:
    def visit(address: Address) -> None: ...

    assert Codec(visit).encode(({"city": "Köln", "zip": 1},), {}) == '{"address":{"city":"Köln","zip":1}}'


def test_the_schema_names_the_arguments() -> None:
    schema = Codec(build).schema()
    assert schema["properties"]["year"] == {"default": 2026, "title": "Year", "type": "integer"}
    assert (schema["required"], schema["additionalProperties"]) == (["region"], False)


def test_a_wrong_type_names_its_field() -> None:
    with pytest.raises(errors.ContractError) as caught:
        encode("DE", year="soon")
    assert caught.value.field == "payload.year"
    assert caught.value.fix == "the payload is {region, year?}"


def test_a_wrong_type_deep_inside_names_its_path() -> None:
    with pytest.raises(errors.ContractError) as caught:
        Codec(ship).encode(
            ({"number": UUID(int=7), "at": datetime.now(UTC), "to": {"city": 7, "zip": 1}},), {}
        )
    assert caught.value.field == "payload.order.to.city"


@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        ((), {}, "missing a required argument: 'region'"),
        (("DE", 2026, 1), {}, "too many positional arguments"),
        (("DE",), {"month": 1}, "unexpected keyword argument 'month'"),
    ],
)
def test_arguments_that_do_not_match_the_signature_are_refused(
    args: tuple[Any, ...], kwargs: dict[str, Any], words: str
) -> None:
    with pytest.raises(errors.ContractError, match=words) as caught:
        encode(*args, **kwargs)
    assert caught.value.field == "payload"


def test_a_stored_payload_is_validated_when_decoded() -> None:
    with pytest.raises(errors.ContractError) as caught:
        Codec(build).decode('{"region": "DE", "month": 1}')
    assert caught.value.field == "payload.month"


def test_a_default_of_the_wrong_type_is_refused_before_it_is_stored() -> None:
    def wrong(year: int = None) -> None: ...  # type: ignore[assignment]  # noqa: RUF013

    with pytest.raises(errors.ContractError) as caught:
        Codec(wrong).encode((), {})
    assert caught.value.field == "payload.year"


def test_handlers_with_unnamed_or_private_arguments_are_refused() -> None:
    def listed(*regions: str) -> None: ...
    def mapped(**regions: str) -> None: ...
    def positional(region: str, /) -> None: ...
    def private(_region: str) -> None: ...

    for handler, field in (
        (listed, "regions"),
        (mapped, "regions"),
        (positional, "region"),
        (private, "_region"),
    ):
        with pytest.raises(errors.ConfigurationError) as caught:
            Codec(handler)
        assert (caught.value.field, bool(caught.value.fix)) == (field, True)


def test_an_argument_without_a_type_is_refused() -> None:
    def untyped(region) -> None: ...  # type: ignore[no-untyped-def]

    with pytest.raises(errors.ConfigurationError, match=r"untyped\(region\): has no type \(annotate it\)"):
        Codec(untyped)


def test_an_unresolvable_type_is_refused() -> None:
    def lost(region: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(errors.ConfigurationError, match="'Nowhere' is not defined") as caught:
        Codec(lost)
    assert caught.value.field == "lost"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_are_refused(value: float) -> None:
    assert (refusal(value).code, refusal({"a": [1, value]}).field) == (
        "payload.refused",
        "payload.value.a[1]",
    )


@pytest.mark.parametrize(
    ("value", "field"),
    [("a\0b", "payload.value"), ({"a\0": 1}, "payload.value.a\0"), ([["\0"]], "payload.value[0][0]")],
)
def test_nul_is_refused(value: Any, field: str) -> None:
    assert (refusal(value).code, refusal(value).field) == ("payload.refused", field)


@pytest.mark.parametrize("value", [object(), "\ud800", {"\ud800": 1}, b"\xff", nested(300), nested(5000)])
def test_values_that_json_cannot_represent_are_refused(value: Any) -> None:
    assert refusal(value).code == "payload.refused"
    assert (refusal(value).field or "").startswith("payload")


def test_depth_is_bounded() -> None:
    assert Codec(anything).encode((nested(31),), {}).count("[") == 31
    assert "nested deeper than 32" in refusal(nested(32)).message


def test_size_is_bounded_in_bytes() -> None:
    frame = len('{"value":""}')
    assert len(Codec(anything).encode(("x" * (256 * 1024 - frame),), {})) == 256 * 1024
    assert refusal("x" * (256 * 1024 - frame + 1)).message == "262145 bytes, 262144 allowed"
    assert "262146 bytes" in refusal("ä" * (128 * 1024 - 5)).message


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"password": "hunter2"}, ".password"),
        ({"smtp": {"client_secret": "x"}}, ".smtp.client_secret"),
        ([{"API-Key": "x"}], "[0].API-Key"),
        ("-----BEGIN RSA PRIVATE KEY-----", ""),
        ({"note": "use AKIAABCDEFGHIJKLMNOP"}, ".note"),
        (["ghp_" + "a" * 36], "[0]"),
    ],
)
def test_a_secret_is_refused_with_an_alternative(value: Any, path: str) -> None:
    error = refusal(value)
    assert isinstance(error, errors.SecretInPayload)
    assert error.field == f"payload.value{path}"
    assert "`secret_ref`" in (error.fix or "")


def test_an_argument_that_is_named_like_a_secret_is_refused() -> None:
    def login(user: str, password: str) -> None: ...

    with pytest.raises(errors.SecretInPayload) as caught:
        Codec(login).encode(("u1", "hunter2"), {})
    assert caught.value.field == "payload.password"


@pytest.mark.parametrize(
    "value", [{"secret_ref": "vault:smtp"}, {"password": ""}, {"token": 7}, {"tokens": "a b"}]
)
def test_references_to_secrets_are_accepted(value: Any) -> None:
    assert Codec(anything).decode(Codec(anything).encode((value,), {})) == {"value": value}


def test_results_take_the_declared_type() -> None:
    def read_order() -> Order: ...  # type: ignore[empty-body]
    def untyped(): ...  # type: ignore[no-untyped-def]

    stored = {"number": str(UUID(int=7)), "at": "2026-01-01T00:00:00Z", "to": {"city": "Köln", "zip": 1}}
    assert Codec(read_order).decode_result(stored).at == datetime(2026, 1, 1, tzinfo=UTC)
    assert Codec(ship).decode_result({"x": 1, "y": 2}) == Point(1, 2)
    assert Codec(untyped).decode_result([1, None]) == [1, None]
