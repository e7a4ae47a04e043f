"""The request of an analysis: sources, modules and language, with limits and errors per field."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_core import PydanticCustomError

from duly.blobs import BadBlobRef, BlobRef
from duly.core.errors import ContractError
from duly.core.redaction import printable

MAX_SOURCES = 200
MAX_MODULES = 20
MAX_NAME_LENGTH = 100
MAX_TEXT_LENGTH = 100_000
MAX_INLINE_BYTES = 192 * 1024
"""Bytes of all texts together: larger ones are uploaded, so that the payload stays small."""
MAX_BLOB_BYTES = 5 * 2**20
MAX_TOTAL_BYTES = 100 * 2**20

_UPLOAD_FIX = "upload it, and pass its reference as `blob`"
_FIXES = {
    "string_too_long": "shorten it",
    "string_too_short": "enter at least one character",
    "extra_forbidden": "remove it",
    "missing": "add it",
    "literal_error": 'use "auto", "de" or "en"',
}


class Module(StrEnum):
    """A module of the analysis."""

    LANGUAGE = "language"
    SIZE = "size"
    TERMS = "terms"
    FIGURES = "figures"
    LIKENESS = "likeness"


def _error(message: str, fix: str, within: str = "") -> PydanticCustomError:
    """Return an error with its fix and its position within the field."""
    return PydanticCustomError("analyze", "{message}", {"message": message, "fix": fix, "within": within})


def _check_list(noun: str, limit: int) -> BeforeValidator:
    """Return a validator of the length, which runs before the items are validated."""

    def check(values: Any) -> Any:
        if not isinstance(values, list | tuple):
            raise _error(f"must be a list of {noun}s", f"put the {noun}s in a list, also a single one")
        if not values:
            raise _error(f"must have at least one {noun}", f"add a {noun}")
        if len(values) > limit:
            raise _error(f"{len(values)} {noun}s, {limit} allowed", "split the request")
        return values

    return BeforeValidator(check)


def _list_schema(limit: int) -> Any:
    """Return the same limits for the JSON schema."""
    return Field(json_schema_extra={"minItems": 1, "maxItems": limit})


def _check_module(module: Any) -> Any:
    if module not in list(Module):
        names = ", ".join(Module)
        raise _error("no such module", f"use one of {names}, or omit `modules` for all")
    return module


def _check_source(source: Any) -> Any:
    if not isinstance(source, dict | Source):
        raise _error("must be an object", "pass a name, and its text or blob")
    return source


def _check_name(name: str) -> str:
    if printable(name) != name:
        raise _error("contains characters that are not printable", "use a plain file name")
    return name


def _check_blob(text: str) -> str:
    try:
        size = BlobRef.parse(text).size
    except BadBlobRef:
        raise _error("is not a blob reference", "pass the reference that the upload returned") from None
    if size > MAX_BLOB_BYTES:
        raise _error(f"{size} bytes, {MAX_BLOB_BYTES} allowed", "split the file")
    return text


class Source(BaseModel):
    """A named text, or the reference of an upload."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[
        str,
        StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_NAME_LENGTH),
        AfterValidator(_check_name),
    ] = Field(description="The name in the results; unique in the request.", examples=["bericht.txt"])
    blob: Annotated[str, AfterValidator(_check_blob)] | None = Field(
        default=None, description="The reference of an upload of this org, instead of `text`."
    )
    text: str | None = Field(default=None, validate_default=True, description="The text, instead of `blob`.")

    @field_validator("text")
    @classmethod
    def _check_text(cls, text: str | None, info: ValidationInfo) -> str | None:
        if "blob" in info.data and (text is None) is (info.data["blob"] is None):
            raise _error("must have either text or blob", "pass one of them")
        if text is not None and len(text) > MAX_TEXT_LENGTH:
            raise _error(f"{len(text)} characters, {MAX_TEXT_LENGTH} allowed", _UPLOAD_FIX)
        if text is not None and ("\0" in text or _has_lone_surrogate(text)):
            raise _error("contains NUL or a lone surrogate", "remove it")
        return text

    @property
    def ref(self) -> BlobRef | None:
        """The reference of the upload, if it is one."""
        return None if self.blob is None else BlobRef.parse(self.blob)

    @property
    def size(self) -> int:
        """The size in bytes."""
        return len((self.text or "").encode()) if self.ref is None else self.ref.size


def _has_lone_surrogate(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)


def _check_sources(sources: tuple[Source, ...]) -> tuple[Source, ...]:
    names: set[str] = set()
    for index, source in enumerate(sources):
        if source.name in names:
            raise _error(f"duplicate name {source.name!r}", "use a unique name", f"{index}.name")
        names.add(source.name)
    inline = sum(source.size for source in sources if source.blob is None)
    if inline > MAX_INLINE_BYTES:
        raise _error(f"{inline} bytes of text, {MAX_INLINE_BYTES} allowed", "upload the large texts as blobs")
    if sum(source.size for source in sources) > MAX_TOTAL_BYTES:
        raise _error(f"more than {MAX_TOTAL_BYTES} bytes", "split the request")
    return sources


def _sort_modules(modules: tuple[Module, ...]) -> tuple[Module, ...]:
    return tuple(module for module in Module if module in modules)


Sources = Annotated[
    tuple[Annotated[Source, BeforeValidator(_check_source)], ...],
    _list_schema(MAX_SOURCES),
    AfterValidator(_check_sources),
    _check_list("source", MAX_SOURCES),
]
Modules = Annotated[
    tuple[Annotated[Module, BeforeValidator(_check_module)], ...],
    _list_schema(MAX_MODULES),
    AfterValidator(_sort_modules),
    _check_list("module", MAX_MODULES),
]
Language = Literal["auto", "de", "en"]
"""The language of the rules for words and syllables; `auto` detects it."""


class AnalyzeChunk(NamedTuple):
    """A chunk of the job: a source and a module."""

    source: Source
    module: Module

    @property
    def key(self) -> str:
        """The key of its partial result."""
        return f"{self.source.name}/{self.module}"


class AnalyzeRequest(BaseModel):
    """The body of a request, and the payload of a job."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sources: Sources
    modules: Modules = tuple(Module)
    language: Language = "auto"

    @classmethod
    def read(cls, values: Any) -> Self:
        """Validate plain values; the error names the field, as `sources.3.text`."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise _contract_error(error) from None

    @property
    def chunks(self) -> list[AnalyzeChunk]:
        """The chunks, source by source."""
        return [AnalyzeChunk(source, module) for source in self.sources for module in self.modules]

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the job: `job.enqueue(**request.arguments)`."""
        return {"sources": self.sources, "modules": self.modules, "language": self.language}


def _contract_error(error: ValidationError) -> ContractError:
    first = error.errors(include_url=False)[0]
    context = first.get("ctx", {})
    path = [str(part) for part in (*first["loc"], context.get("within")) if part not in ("", None)]
    fix = context.get("fix") or _FIXES.get(first["type"], "see the guide")
    return ContractError(first["msg"], field=".".join(path) or "request", fix=fix)


def cost(request: AnalyzeRequest) -> int:
    """Return the bytes of all sources, without reading the uploads."""
    return sum(source.size for source in request.sources)
