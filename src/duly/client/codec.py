"""How a handler's arguments become a payload and its return value a result, and back."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model

from duly.model import payload as rules
from duly.model.errors import ConfigurationError, ContractError

_CONFIG = ConfigDict(extra="forbid", ser_json_inf_nan="constants")


class Codec:
    """The payload model and the result type of one handler, read from its annotations."""

    def __init__(self, handler: Callable[..., Any]) -> None:
        self._signature = inspect.signature(handler)
        hints = get_type_hints(handler, include_extras=True)
        self.payload: type[BaseModel] = _payload_model(handler.__name__, self._signature, hints)
        self._result: TypeAdapter[Any] = TypeAdapter(hints.get("return", Any))

    def encode(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        """The arguments of a call as checked JSON."""
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ContractError(str(error), field="payload", fix=f"call it as {self._signature}") from None
        return self.encode_mapping(bound.arguments)

    def encode_mapping(self, values: Mapping[str, Any]) -> str:
        """A payload given by name, as checked JSON."""
        dumped = self._validated(values).model_dump(mode="json")
        text = json.dumps(dumped, separators=(",", ":"), ensure_ascii=False)
        rules.check(dumped, len(text.encode()))
        return text

    def decode(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments for the handler, validated again."""
        model = self._validated(values)
        return {name: getattr(model, name) for name in type(model).model_fields}

    def schema(self) -> dict[str, Any]:
        """The payload's JSON schema."""
        return self.payload.model_json_schema()

    def decode_result(self, value: Any) -> Any:
        """A stored result as the type that the handler declares."""
        return self._result.validate_python(value)

    def _validated(self, values: Mapping[str, Any]) -> BaseModel:
        try:
            return self.payload.model_validate(values)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[0]
            path = ".".join(["payload", *map(str, first["loc"])])
            raise ContractError(first["msg"], field=path, fix=f"the payload is {self._signature}") from None


def _payload_model(name: str, signature: inspect.Signature, hints: Mapping[str, Any]) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ConfigurationError(
                f"{name}{signature} takes *args, **kwargs or positional-only arguments",
                field=parameter.name,
                fix="name every argument: they are the payload's fields",
            )
        if parameter.name not in hints:
            raise ConfigurationError("has no type", field=f"{name}({parameter.name})", fix="annotate it")
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[parameter.name] = (hints[parameter.name], default)
    return create_model(f"{name}_payload", __config__=_CONFIG, **fields)
