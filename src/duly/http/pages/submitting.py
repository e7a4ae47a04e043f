"""The page on which jobs are asked for: an analysis, or any job type with its payload."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from markupsafe import Markup
from starlette.responses import Response

from duly.analyze.job import JOB_TYPE as ANALYZE
from duly.analyze.request import LARGEST_BLOB, MOST_INLINE, MOST_SOURCES, Module
from duly.client.registry import Registry
from duly.http.pages.render import Pages, as_data, fill, language_of
from duly.http.pages.texts import texts
from duly.http.types import offered

_EMPTY: dict[str, Any] = {
    "string": "",
    "integer": 0,
    "number": 0,
    "boolean": False,
    "array": [],
    "object": {},
}


def page(pages: Pages, request: Request, registry: Registry, *, may_write: bool) -> Response:
    """Both forms; the analysis only where it is offered."""
    language = language_of(request)
    kinds = {job.name: job.codec.schema() for job in offered(registry)}
    analysis = ANALYZE in kinds
    return pages.page(
        request,
        "submit",
        analysis=_analysis(language) if analysis else Markup(),
        open=Markup() if analysis else Markup("open"),
        kinds=_kinds(language, kinds),
        forbidden=Markup() if may_write else fill("readonly.html", language),
    )


def _analysis(language: str) -> Markup:
    said = texts(language)
    boxes = [
        fill(
            "module.html",
            language,
            module=module,
            label=said[f"module.{module}"],
            about=said[f"module.{module}.about"],
        )
        for module in Module
    ]
    limits = as_data({"sources": MOST_SOURCES, "inline": MOST_INLINE, "file": LARGEST_BLOB})
    return fill("analysis.html", language, modules=Markup().join(boxes), limits=limits)


def _kinds(language: str, kinds: dict[str, dict[str, Any]]) -> Markup:
    options = [
        fill("kind.html", language, kind=name, example=as_data(example(schema)))
        for name, schema in sorted(kinds.items())
    ]
    return Markup().join(options)


def example(schema: dict[str, Any]) -> dict[str, Any]:
    """A payload to begin with: what must be there, empty, and what may be, as it would be without."""
    required = set(schema.get("required", ()))
    return {
        name: part["default"] if "default" in part else _EMPTY.get(part.get("type", ""))
        for name, part in schema.get("properties", {}).items()
        if name in required or "default" in part
    }
