"""The page of a document: type, extraction, text and versions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from fastapi import Request
from starlette.responses import Response

from duly.apps.documents.extraction.service import REMOTE_ENGINES
from duly.apps.documents.http.models import visitor
from duly.apps.documents.library.service import BYTES_MAX
from duly.apps.documents.pages.choices import type_choices
from duly.apps.documents.uploads.service import PART_SIZE
from duly.core.principal import Scope
from duly.core.states import EventType
from duly.http.requester import Requester
from duly.http.service import Service
from duly.pages.render import Pages, to_json

_LOCAL_ENGINES = ("fast", "hires")


async def page(
    pages: Pages, request: Request, service: Service, requester: Requester, document_id: UUID
) -> Response:
    """Show a document; its script reads what changes."""
    reader = visitor(requester)
    documents, options = service.documents, service.documents.options
    document = await documents.get(reader, document_id)
    may_write = requester.may(Scope.WRITE)
    remote = sorted(REMOTE_ENGINES) if options.unstructured_url is not None else []
    return pages.page(
        request,
        "document",
        title=document.name,
        document=document,
        folder=await documents.folders.get(reader, document.node_id) if document.node_id else None,
        folders=await documents.folders.list(reader) if may_write else (),
        event_types=[event.value for event in EventType],
        may_write=may_write,
        has_classifier=options.classifier is not None,
        engines=[*_LOCAL_ENGINES, *remote],
        cents_per_page={engine: options.cents_per_page.get(engine, 0.0) for engine in remote},
        metadata=_metadata_text(document.metadata),
        limits={
            "whole": min(PART_SIZE, service.options.upload_max),
            "file": BYTES_MAX,
            "document_id": str(document.document_id),
        },
        **type_choices(request),
    )


def _metadata_text(metadata: Mapping[str, Any]) -> str:
    """Return a line `name=value` for each field, as on the command line; else all of it as JSON."""
    if any("=" in name or not name.isprintable() for name in metadata):
        return to_json(metadata)
    return "\n".join(f"{name}={_value_text(value)}" for name, value in metadata.items())


def _value_text(value: Any) -> str:
    """Return a text as it is, unless it would be read as another JSON value."""
    if isinstance(value, str) and value.isprintable() and value == value.strip():
        try:
            json.loads(value)
        except ValueError:
            return value
    return to_json(value)
