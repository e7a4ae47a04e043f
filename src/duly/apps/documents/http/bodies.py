"""Files as they come in: the bytes of a body as they arrive, and forms with one file in them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from fastapi import HTTPException, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.datastructures import FormData, UploadFile
from starlette.requests import ClientDisconnect

from duly.apps.documents.http.models import UploadFields
from duly.core import payload
from duly.core.errors import ContractError, MissingField, PayloadRefused

BYTES = "application/octet-stream"
_FORM = "multipart/form-data"
_PIECE = 1024 * 1024
_MOST_FIELDS = 10
_FIELD_MAX = 64 * 1024
_BINARY = {"type": "string", "format": "binary", "minLength": 1}
BODY_OF_BYTES: dict[str, Any] = {"requestBody": {"required": True, "content": {BYTES: {"schema": _BINARY}}}}
"""What a route takes that reads the bytes of its body itself, for the OpenAPI document."""


def _form_document() -> dict[str, Any]:
    said = UploadFields.model_json_schema()
    # In a form it is a text, as all of them are.
    said["properties"]["metadata"] = {"type": "string", "contentMediaType": "application/json"}
    said["properties"]["file"] = _BINARY
    schema = {**said, "title": "UploadForm", "required": ["file"]}
    return {"requestBody": {"required": True, "content": {_FORM: {"schema": schema}}}}


BODY_OF_FORM = _form_document()
"""The same for a form with a file."""


class Received(NamedTuple):
    """A file of a form, and what is said of it."""

    name: str
    pieces: AsyncIterator[bytes]
    said: UploadFields


async def pieces(request: Request) -> AsyncIterator[bytes]:
    """The body as it arrives."""
    if request.headers.get("content-type", "").startswith("multipart/"):
        raise HTTPException(415, "send the bytes of the file as the body, as in curl --data-binary @file")
    try:
        async for piece in request.stream():
            if piece:
                yield piece
    except ClientDisconnect:
        raise _broken_off() from None


@asynccontextmanager
async def received(request: Request) -> AsyncIterator[Received]:
    """The one file of a form; what is larger than a piece of memory lies on the disk until the end."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        raise HTTPException(415, f"send a form with the file, with `Content-Type: {_FORM}`")
    limits: dict[str, Any] = {"max_files": 1, "max_fields": _MOST_FIELDS, "max_part_size": _FIELD_MAX}
    try:
        form = await request.form(**limits)
    except ClientDisconnect:
        raise _broken_off() from None
    try:
        file = form.get("file")
        if not isinstance(file, UploadFile):
            raise MissingField("missing", field="file", fix="send it as the field `file`, with a file name")
        said = _said(form)
        yield Received(said.name or file.filename or "", _pieces(file), said)
    finally:
        await form.close()


def _said(form: FormData) -> UploadFields:
    found: dict[str, Any] = {}
    for name, value in form.multi_items():
        if name in found:
            raise ContractError("given twice", field=name[:100], fix="send it once")
        found[name] = value
    del found["file"]
    if isinstance(found.get("metadata"), str):
        found["metadata"] = _parsed(found["metadata"])
    try:
        return UploadFields.model_validate(found)
    except ValidationError as error:
        wrong = [{**one, "loc": ("body", *one["loc"])} for one in error.errors()]
        raise RequestValidationError(wrong) from None


def _parsed(text: str) -> Any:
    try:
        return payload.parse_payload(text)
    except PayloadRefused as error:
        error.field = "metadata"
        raise


async def _pieces(file: UploadFile) -> AsyncIterator[bytes]:
    while piece := await file.read(_PIECE):
        yield piece


def _broken_off() -> HTTPException:
    return HTTPException(400, "the connection ended before the file did")
