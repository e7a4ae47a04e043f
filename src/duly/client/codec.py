"""How a handler's arguments become a payload and its return value a result, and back."""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Callable, Mapping
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, PydanticUserError, TypeAdapter, ValidationError, create_model
from pydantic_core import PydanticSerializationError

from duly.client.handling import HandlerContext, context_parameter
from duly.model import payload as rules
from duly.model.errors import ConfigurationError, ContractError, PayloadRefused
from duly.model.verdict import Verdict

_COMPACT = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)
_CONFIG = ConfigDict(extra="forbid", ser_json_inf_nan="constants", validate_default=True)


class Codec:
    """The payload model and the result type of one handler, read from its annotations."""

    def __init__(self, handler: Callable[..., Any]) -> None:
        signature, hints = inspect.signature(handler), _type_hints(handler)
        self.context_type: type[HandlerContext] | None = None
        asking = context_parameter(signature, hints)
        if asking is not None:
            self.context_type = hints.pop(asking)
            rest = [p for name, p in signature.parameters.items() if name != asking]
            signature = signature.replace(parameters=rest)
        self._signature = signature
        given = signature.parameters.values()
        self._positional = tuple(p.name for p in given if p.kind is p.POSITIONAL_OR_KEYWORD)
        self._names = frozenset(signature.parameters)
        self._required = frozenset(p.name for p in given if p.default is p.empty)
        self._shape = _shape(signature)
        self.payload: type[BaseModel] = _payload_model(handler.__name__, signature, hints)
        self._result = _result_adapter(_without_verdicts(hints.get("return", Any)))

    def encode(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        """The arguments of a call as checked JSON."""
        values = dict(zip(self._positional, args, strict=False))
        values.update(kwargs)
        fits = len(values) == len(args) + len(kwargs) and self._required <= values.keys() <= self._names
        return self.encode_mapping(values if fits else self._bound(args, kwargs))

    def _bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        """The long way, which says what is wrong."""
        try:
            return self._signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise ContractError(str(error), field="payload", fix=f"call it as {self._signature}") from None

    def encode_mapping(self, values: Mapping[str, Any]) -> str:
        """A payload given by name, as checked JSON."""
        model = self._checked(self.payload.model_validate, values)
        try:
            # What is written must be readable again: under its alias, without computed fields.
            dumped = model.model_dump(mode="json", by_alias=True, round_trip=True)
            text = _COMPACT.encode(dumped)
            size = len(text.encode("utf-8", "surrogatepass"))
        except ValueError as error:
            raise PayloadRefused(f"not JSON: {error}", field="payload", fix="pass plain values") from None
        rules.check(dumped, size)
        return text

    def refusals(self, values: Mapping[str, Any]) -> list[ContractError]:
        """Everything that is wrong with a payload given by name, field by field."""
        try:
            self.payload.model_validate(values)
        except ValidationError as error:
            return _refusals("payload", error, f"the payload is {self._shape}")
        return []

    def decode(self, text: str | bytes) -> dict[str, Any]:
        """The arguments for the handler from stored JSON, validated again."""
        # As JSON, because a strict type takes text for a date there and nowhere else.
        model = self._checked(self.payload.model_validate_json, text)
        return dict(model.__dict__)

    def encode_result(self, value: Any) -> Any:
        """A handler's return value as plain JSON values."""
        if value is None:
            return None
        try:
            return self._result.dump_python(
                value, mode="json", by_alias=True, round_trip=True, warnings="error"
            )
        except (PydanticSerializationError, ValueError) as error:
            raise ContractError(
                f"not what the handler declares: {error}", field="result", fix="return its declared type"
            ) from None

    def schema(self) -> dict[str, Any]:
        """The payload's JSON schema."""
        return self.payload.model_json_schema()

    def decode_result(self, value: Any) -> Any:
        """A stored result as the type that the handler declares."""
        try:
            return self._result.validate_json(json.dumps(value))
        except ValidationError as error:
            raise _refusal("result", error, "it was stored under another type") from None

    def _checked(self, validate: Callable[[Any], BaseModel], values: Any) -> BaseModel:
        try:
            return validate(values)
        except ValidationError as error:
            raise _refusal("payload", error, f"the payload is {self._shape}") from None


def _shape(signature: inspect.Signature) -> str:
    """The names of a payload, for those who do not read Python."""
    optional = {name for name, given in signature.parameters.items() if given.default is not given.empty}
    return f"{{{', '.join(f'{name}?' if name in optional else name for name in signature.parameters)}}}"


def _refusal(root: str, error: ValidationError, fix: str) -> ContractError:
    return _refusals(root, error, fix)[0]


def _refusals(root: str, error: ValidationError, fix: str) -> list[ContractError]:
    return [
        ContractError(one["msg"], field=".".join([root, *map(str, one["loc"])]), fix=fix)
        for one in error.errors(include_url=False, include_context=False)
    ]


def _result_adapter(hint: Any) -> TypeAdapter[Any]:
    try:
        # Without it, NaN would silently become null where no type is declared.
        return TypeAdapter(hint, config=ConfigDict(ser_json_inf_nan="constants"))
    except PydanticUserError:  # the type has a configuration of its own
        return TypeAdapter(hint)


def _without_verdicts(hint: Any) -> Any:
    """`Report | Snooze` returns reports: a verdict is no result."""
    if isinstance(hint, type) and issubclass(hint, Verdict):
        return None
    if get_origin(hint) in (Union, UnionType):
        kept = [part for part in get_args(hint) if not (isinstance(part, type) and issubclass(part, Verdict))]
        return Union[tuple(kept)] if kept else None  # noqa: UP007
    return hint


def _type_hints(handler: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(handler, include_extras=True)
    except NameError as error:
        raise ConfigurationError(
            str(error), field=handler.__name__, fix="define the type at the top of its module"
        ) from None


def _payload_model(name: str, signature: inspect.Signature, hints: Mapping[str, Any]) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for parameter in signature.parameters.values():
        nameless = parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        if nameless or parameter.name.startswith("_"):
            raise ConfigurationError(
                f"{name}{signature} takes *args, **kwargs, positional-only or _private arguments",
                field=parameter.name,
                fix="name every argument: they are the payload's fields",
            )
        if parameter.name not in hints:
            raise ConfigurationError("has no type", field=f"{name}({parameter.name})", fix="annotate it")
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[parameter.name] = (hints[parameter.name], default)
    with warnings.catch_warnings():
        # An argument may be called `schema` or `copy`: nobody calls these methods on a payload.
        warnings.filterwarnings("ignore", message="Field name .* shadows an attribute")
        return create_model(f"{name}_payload", __config__=_CONFIG, **fields)
