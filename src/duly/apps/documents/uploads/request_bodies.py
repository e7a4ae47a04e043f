"""Request bodies with a file: the bytes themselves, or a form with one file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from fastapi import HTTPException, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.datastructures import FormData, UploadFile
from starlette.requests import ClientDisconnect

from duly.apps.documents.request_models import UploadFields
from duly.core import payload
from duly.core.errors import ContractError, MissingField, PayloadRefused

_BYTES = "application/octet-stream"
_FORM = "multipart/form-data"
_CHUNK_SIZE = 1024 * 1024
_MAX_FIELDS = 10
_MAX_FIELD_SIZE = 64 * 1024
_BINARY = {"type": "string", "format": "binary", "minLength": 1}


def _request_body(content_type: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {content_type: {"schema": schema}}}}


def _form_schema() -> dict[str, Any]:
    schema = UploadFields.model_json_schema()
    # All fields of a form are texts.
    schema["properties"]["metadata"] = {"type": "string", "contentMediaType": "application/json"}
    schema["properties"]["file"] = _BINARY
    return {**schema, "title": "UploadForm", "required": ["file"]}


BODY_OF_BYTES = _request_body(_BYTES, _BINARY)
"""The OpenAPI document of a body that is a file."""
BODY_OF_FORM = _request_body(_FORM, _form_schema())
"""The OpenAPI document of a form with a file."""


class FileForm(NamedTuple):
    """A form with a file."""

    name: str
    chunks: AsyncIterator[bytes]
    fields: UploadFields


async def body_chunks(request: Request) -> AsyncIterator[bytes]:
    """Yield the body as it arrives."""
    if request.headers.get("content-type", "").startswith("multipart/"):
        raise HTTPException(415, "send the bytes of the file as the body, as in curl --data-binary @file")
    try:
        async for chunk in request.stream():
            if chunk:
                yield chunk
    except ClientDisconnect:
        raise _disconnected() from None


@asynccontextmanager
async def file_form(request: Request) -> AsyncIterator[FileForm]:
    """Parse a form with one file; a large file is spooled to disk until the block is left."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        raise HTTPException(415, f"send a form with the file, with `Content-Type: {_FORM}`")
    try:
        form = await request.form(max_files=1, max_fields=_MAX_FIELDS, max_part_size=_MAX_FIELD_SIZE)
    except ClientDisconnect:
        raise _disconnected() from None
    try:
        file = form.get("file")
        if not isinstance(file, UploadFile):
            raise MissingField("missing", field="file", fix="send it as the field `file`, with a file name")
        fields = _fields(form)
        yield FileForm(fields.name or file.filename or "", _chunks(file), fields)
    finally:
        await form.close()


def _fields(form: FormData) -> UploadFields:
    values: dict[str, Any] = {}
    for name, value in form.multi_items():
        if name in values:
            raise ContractError("sent twice", field=name[:100], fix="send it once")
        values[name] = value
    del values["file"]
    if isinstance(values.get("metadata"), str):
        values["metadata"] = _parse_metadata(values["metadata"])
    try:
        return UploadFields.model_validate(values)
    except ValidationError as error:
        errors = [{**one, "loc": ("body", *one["loc"])} for one in error.errors()]
        raise RequestValidationError(errors) from None


def _parse_metadata(text: str) -> Any:
    try:
        return payload.parse_payload(text)
    except PayloadRefused as error:
        error.field = "metadata"
        raise


async def _chunks(file: UploadFile) -> AsyncIterator[bytes]:
    while chunk := await file.read(_CHUNK_SIZE):
        yield chunk


def _disconnected() -> HTTPException:
    return HTTPException(400, "the connection ended before the file did")
