"""Responses: JSON of models, response models that derive from resources, pages, conditional requests."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Collection, Mapping
from datetime import timedelta
from functools import cache
from itertools import pairwise
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.fields import FieldInfo
from starlette.responses import Response

_WAIT = re.compile(r"(?:^|[,;\s])wait=(\d{1,6})(?:$|[,;\s])")
_ETAGS = re.compile(r'(?:W/)?"[^"]*"|\*')


class ResponseModel(BaseModel):
    """The base of response models; they read the attributes of resources."""

    model_config = ConfigDict(from_attributes=True, ser_json_timedelta="float")


def response_model(
    resource: type,
    name: str | None = None,
    *,
    include: Collection[str] | None = None,
    exclude: Collection[str] = ("org_id",),
    descriptions: Mapping[str, str] | None = None,
    **fields: Any,
) -> type[ResponseModel]:
    """Derive the response model of a resource: its fields, described by their docstrings.

    The resource is a pydantic model or a dataclass. `fields` replaces or adds fields: by a type, or by a type
    and its description.
    """
    types, texts = _field_types(resource), {**_field_docstrings(resource), **(descriptions or {})}
    names = include or [field for field in types if field not in exclude]
    definitions: dict[str, Any] = {
        field: (types[field], Field(description=texts.get(field))) for field in names
    }
    return create_model(
        name or resource.__name__,
        __base__=ResponseModel,
        __doc__=inspect.getdoc(resource),
        **{**definitions, **_definitions(fields)},
    )


def page_model(
    items: str, item: type[BaseModel], name: str | None = None, **fields: Any
) -> type[ResponseModel]:
    """Return the response model of a page: its items, and the cursor of the next page."""
    after = (str | None, "The cursor of the next page; null on the last one.")
    return list_model(items, item, name or f"{item.__name__}Page", **fields, after=after)


def list_model(
    items: str, item: type[BaseModel], name: str | None = None, **fields: Any
) -> type[ResponseModel]:
    """Return the response model of a list that comes in one piece."""
    return create_model(
        name or f"{item.__name__}List",
        __base__=ResponseModel,
        __doc__=f"{items.capitalize().replace('_', ' ')}.",
        **_definitions({items: list[item], **fields}),  # type: ignore[valid-type]
    )


def _definitions(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields as pydantic defines them: from types, or from types with a description or a `Field`."""
    pairs = {name: value if isinstance(value, tuple) else (value, None) for name, value in fields.items()}
    return {
        name: (kind, about if isinstance(about, FieldInfo) else Field(description=about))
        for name, (kind, about) in pairs.items()
    }


def _field_types(resource: type) -> dict[str, Any]:
    if issubclass(resource, BaseModel):
        return {name: field.annotation for name, field in resource.model_fields.items()}
    types = get_type_hints(resource)
    return {name: types[name] for name in resource.__dataclass_fields__}  # type: ignore[attr-defined]


def _field_docstrings(resource: type) -> dict[str, str]:
    """Return the docstrings below the fields of a class, and of the classes that it extends."""
    found: dict[str, str] = {}
    for base in reversed(resource.__mro__):
        if base.__module__.startswith("duly."):
            found |= _module_docstrings(base.__module__).get(base.__name__, {})
    if issubclass(resource, BaseModel):
        found |= {
            name: field.description for name, field in resource.model_fields.items() if field.description
        }
    return found


@cache
def _module_docstrings(module: str) -> dict[str, dict[str, str]]:
    """Return the docstrings of the fields of each class of a module; none where its source is missing."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except OSError:
        return {}
    return {
        node.name: {
            field.target.id: inspect.cleandoc(text.value.value)
            for field, text in pairwise(node.body)
            if isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
            and isinstance(text.value.value, str)
        }
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }


def json_response(model: BaseModel, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a model as JSON, without validating it again."""
    return Response(model.model_dump_json(), status, dict(headers or {}), media_type="application/json")


def etag_matches(if_none_match: str, etag: str) -> bool:
    """Return whether the client has this state already."""
    return any(
        known == "*" or known.removeprefix("W/") == etag.removeprefix("W/")
        for known in _ETAGS.findall(if_none_match)
    )


def preferred_wait(prefer: str | None, longest: timedelta) -> float:
    """Return the seconds of `Prefer: wait=N`, up to the longest wait."""
    match = _WAIT.search(prefer or "")
    return min(float(match[1]), longest.total_seconds()) if match else 0.0
