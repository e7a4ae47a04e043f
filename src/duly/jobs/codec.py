"""Convert the arguments of a handler to a payload and its return value to a result, and back."""

from __future__ import annotations

import inspect
import json
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from types import UnionType
from typing import Any, ClassVar, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, PydanticUserError, TypeAdapter, ValidationError, create_model
from pydantic_core import PydanticSerializationError, to_json

from duly.core import payload as rules
from duly.core.errors import ConfigurationError, ContractError, PayloadRefused
from duly.core.outcome import HandlerSignal

_CONFIG = ConfigDict(extra="forbid", ser_json_inf_nan="constants", validate_default=True)


class HandlerContext(ABC):
    """The context of a running job, passed to a handler that annotates its first argument with it.

    The worker implements it; the methods declared here are for handlers in packages below the worker.
    """

    for_async: ClassVar[bool] = True
    """Whether its methods are awaited."""

    @abstractmethod
    def progress(self, percent: float, note: str | None = None) -> None:
        """Report progress, which never falls. Cheap: many calls become few writes."""

    @abstractmethod
    def check_canceled(self) -> None:
        """Stop the handler here if the job is canceled or its lease is lost. Call it between steps."""


class Codec:
    """The payload model and the result type of a handler, from its annotations."""

    def __init__(self, handler: Callable[..., Any]) -> None:
        signature, hints = inspect.signature(handler), _type_hints(handler)
        self.context_type: type[HandlerContext] | None = None
        context_name = context_parameter(signature, hints)
        if context_name is not None:
            self.context_type = hints.pop(context_name)
            rest = [p for name, p in signature.parameters.items() if name != context_name]
            signature = signature.replace(parameters=rest)
        self._signature = signature
        given = signature.parameters.values()
        self._positional = tuple(p.name for p in given if p.kind is p.POSITIONAL_OR_KEYWORD)
        self._names = frozenset(signature.parameters)
        self._required = frozenset(p.name for p in given if p.default is p.empty)
        self._shape = _shape(signature)
        self.payload: type[BaseModel] = _payload_model(handler.__name__, signature, hints)
        # The methods of the model only call these.
        self._validator = self.payload.__pydantic_validator__
        self._serializer = self.payload.__pydantic_serializer__
        self._result = _result_adapter(_without_signals(hints.get("return", Any)))

    def encode(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        """Encode the arguments of a call as checked JSON."""
        values = dict(zip(self._positional, args))  # noqa: B905 - the keyword would double its cost
        values.update(kwargs)
        names = values.keys()
        fits = names == self._names or self._required <= names <= self._names
        whole = len(names) == len(args) + len(kwargs)
        return self.encode_mapping(values if fits and whole else self._bound(args, kwargs))

    def _bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Bind the arguments slowly, for its error messages."""
        try:
            return self._signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise ContractError(str(error), field="payload", fix=f"call it as {self._signature}") from None

    def encode_mapping(self, values: Mapping[str, Any]) -> str:
        """Encode a payload given by name as checked JSON."""
        dumped = None
        try:
            model = self._validator.validate_python(values)
            # The text must be readable again: under its alias, without computed fields.
            dumped = self._serializer.to_python(model, mode="json", by_alias=True, round_trip=True)
            encoded = to_json(dumped, inf_nan_mode="constants")
        except ValidationError as error:
            raise self._refusal(error) from None
        except ValueError as error:
            rules.check_payload(dumped, 0)  # names the field, if it can
            raise PayloadRefused(f"not JSON: {error}", field="payload", fix="pass plain values") from None
        rules.check_payload(dumped, len(encoded))
        return encoded.decode()

    def refusals(self, values: Mapping[str, Any]) -> list[ContractError]:
        """Return the errors of a payload given by name, field by field."""
        try:
            self.payload.model_validate(values)
        except ValidationError as error:
            return _refusals("payload", error, f"the payload is {self._shape}")
        return []

    def decode(self, text: str | bytes) -> dict[str, Any]:
        """Decode and validate the arguments for the handler from stored JSON."""
        # As JSON, because a strict type accepts text for a date in JSON only.
        try:
            arguments: dict[str, Any] = self._validator.validate_json(text).__dict__
        except ValidationError as error:
            raise self._refusal(error) from None
        return arguments

    def encode_result(self, value: Any) -> Any:
        """Encode the return value of a handler as plain JSON values."""
        if value is None:
            return None
        try:
            return self._result.dump_python(
                value, mode="json", by_alias=True, round_trip=True, warnings="error"
            )
        except (PydanticSerializationError, ValueError) as error:
            raise ContractError(
                f"not of the declared return type: {error}", field="result", fix="return the declared type"
            ) from None

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of the payload."""
        return self.payload.model_json_schema()

    def decode_result(self, value: Any) -> Any:
        """Decode a stored result to the return type of the handler."""
        try:
            return self._result.validate_json(json.dumps(value))
        except ValidationError as error:
            raise _refusal(
                "result", error, "the handler's return type has changed since it was stored"
            ) from None

    def _refusal(self, error: ValidationError) -> ContractError:
        return _refusal("payload", error, f"the payload is {self._shape}")


def check_context(context_type: type[HandlerContext] | None, *, is_async: bool) -> None:
    """Refuse a context whose methods would block the loop, or never be awaited."""
    if context_type is not None and context_type.for_async is not is_async:
        style = "async" if context_type.for_async else "not async"
        raise ConfigurationError(
            f"{context_type.__name__} is for handlers that are {style}",
            field="ctx",
            fix=f"annotate it as {'Context' if is_async else 'SyncContext'}",
        )


def context_parameter(signature: inspect.Signature, hints: Mapping[str, Any]) -> str | None:
    """Return the name of the first parameter if its annotation is a context."""
    annotated = [
        name
        for name in signature.parameters
        if isinstance(hints.get(name), type) and issubclass(hints[name], HandlerContext)
    ]
    if annotated and annotated != [next(iter(signature.parameters))]:
        raise ConfigurationError(
            "the context must be the first argument, and the only one",
            field=annotated[-1],
            fix="move it first",
        )
    return annotated[0] if annotated else None


def _shape(signature: inspect.Signature) -> str:
    """Return the fields of a payload as text, optional ones with a question mark."""
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
        # Without this, NaN would silently become null where no type is declared.
        return TypeAdapter(hint, config=ConfigDict(ser_json_inf_nan="constants"))
    except PydanticUserError:  # the type has a configuration of its own
        return TypeAdapter(hint)


def _without_signals(hint: Any) -> Any:
    """Remove handler signals from a return type: `Report | Snooze` returns reports."""
    if isinstance(hint, type) and issubclass(hint, HandlerSignal):
        return None
    if get_origin(hint) in (Union, UnionType):
        results = [
            part
            for part in get_args(hint)
            if not (isinstance(part, type) and issubclass(part, HandlerSignal))
        ]
        return Union[tuple(results)] if results else None  # noqa: UP007
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
        # An argument may be called `schema` or `copy`: these methods of the model are not used.
        warnings.filterwarnings("ignore", message="Field name .* shadows an attribute")
        return create_model(f"{name}_payload", __config__=_CONFIG, **fields)
