"""What may be asked for: sources, modules, language; bounded, and refused by name."""

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

MOST_SOURCES = 200
MOST_MODULES = 20
LONGEST_NAME = 100
LONGEST_TEXT = 100_000
MOST_INLINE = 192 * 1024
"""Bytes of all texts together: a payload is small, files are uploaded."""
LARGEST_BLOB = 5 * 2**20
MOST_BYTES = 100 * 2**20

_UPLOAD = "upload it, and pass its reference as `blob`"
_FIXES = {
    "string_too_long": "shorten it",
    "string_too_short": "say something",
    "extra_forbidden": "leave it out",
    "missing": "add it",
    "literal_error": 'say "auto", "de" or "en"',
}


class Module(StrEnum):
    """One way to look at a source."""

    LANGUAGE = "language"
    SIZE = "size"
    TERMS = "terms"
    FIGURES = "figures"
    LIKENESS = "likeness"


def _refused(message: str, fix: str, within: str = "") -> PydanticCustomError:
    """An error that knows its fix, and where inside of the field it is."""
    return PydanticCustomError("analyze", "{said}", {"said": message, "fix": fix, "within": within})


def _listed(what: str, most: int) -> BeforeValidator:
    """A list, neither empty nor too long: checked before its items, since wrong ones would not count."""

    def check(values: Any) -> Any:
        if not isinstance(values, list | tuple):
            raise _refused(f"a list of {what}s is needed", f"put the {what}s in a list, also a single one")
        if not values:
            raise _refused(f"at least one {what} is needed", f"add a {what}")
        if len(values) > most:
            raise _refused(f"{len(values)} {what}s, {most} allowed", "split the request")
        return values

    return BeforeValidator(check)


def _bounded(most: int) -> Any:
    """The same for the schema."""
    return Field(json_schema_extra={"minItems": 1, "maxItems": most})


def _known(module: Any) -> Any:
    if module not in list(Module):
        choice = ", ".join(Module)
        raise _refused("no such module", f"choose from {choice}, or leave `modules` out for all")
    return module


def _object(source: Any) -> Any:
    if not isinstance(source, dict | Source):
        raise _refused("an object is needed", "pass a name, and its text or blob")
    return source


def _checked_name(name: str) -> str:
    if printable(name) != name:
        raise _refused("holds characters that cannot be shown", "use a plain file name")
    return name


def _checked_blob(text: str) -> str:
    try:
        size = BlobRef.parse(text).size
    except BadBlobRef:
        raise _refused("no blob reference", "pass what the upload answered") from None
    if size > LARGEST_BLOB:
        raise _refused(f"{size} bytes, {LARGEST_BLOB} allowed", "split the file")
    return text


class Source(BaseModel):
    """One text: its name, and itself or the reference of an upload."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[
        str,
        StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_NAME),
        AfterValidator(_checked_name),
    ] = Field(description="How results call it; unique in the request.", examples=["bericht.txt"])
    blob: Annotated[str, AfterValidator(_checked_blob)] | None = Field(
        default=None, description="The reference of an upload of this org; or `text`."
    )
    text: str | None = Field(default=None, validate_default=True, description="The text; or `blob`.")

    @field_validator("text")
    @classmethod
    def _one_of_two(cls, text: str | None, info: ValidationInfo) -> str | None:
        if "blob" in info.data and (text is None) is (info.data["blob"] is None):
            raise _refused("exactly one of text and blob is needed", "pass either text or blob")
        if text is not None and len(text) > LONGEST_TEXT:
            raise _refused(f"{len(text)} characters, {LONGEST_TEXT} allowed", _UPLOAD)
        if text is not None and ("\0" in text or _has_half_pair(text)):
            raise _refused("a NUL character, or half of a surrogate pair", "remove it")
        return text

    @property
    def ref(self) -> BlobRef | None:
        """The reference of the upload."""
        return None if self.blob is None else BlobRef.parse(self.blob)

    @property
    def size(self) -> int:
        """Its bytes."""
        return len((self.text or "").encode()) if self.ref is None else self.ref.size


def _has_half_pair(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)


def _checked_sources(sources: tuple[Source, ...]) -> tuple[Source, ...]:
    seen: set[str] = set()
    for place, source in enumerate(sources):
        if source.name in seen:
            fix = "give every source a name of its own"
            raise _refused(f"{source.name!r} stands twice", fix, f"{place}.name")
        seen.add(source.name)
    inline = sum(source.size for source in sources if source.blob is None)
    if inline > MOST_INLINE:
        raise _refused(f"{inline} bytes of text, {MOST_INLINE} allowed", "upload the large ones as blobs")
    if sum(source.size for source in sources) > MOST_BYTES:
        raise _refused(f"more than {MOST_BYTES} bytes", "split the request")
    return sources


def _in_order(modules: tuple[Module, ...]) -> tuple[Module, ...]:
    return tuple(module for module in Module if module in modules)


Sources = Annotated[
    tuple[Annotated[Source, BeforeValidator(_object)], ...],
    _bounded(MOST_SOURCES),
    AfterValidator(_checked_sources),
    _listed("source", MOST_SOURCES),
]
Modules = Annotated[
    tuple[Annotated[Module, BeforeValidator(_known)], ...],
    _bounded(MOST_MODULES),
    AfterValidator(_in_order),
    _listed("module", MOST_MODULES),
]
Language = Literal["auto", "de", "en"]
"""By whose rules words and syllables are read; `auto` asks the text."""


class Piece(NamedTuple):
    """One chunk of the work: a source, seen by a module."""

    source: Source
    module: Module

    @property
    def key(self) -> str:
        """Its name among the partial results."""
        return f"{self.source.name}/{self.module}"


class AnalyzeRequest(BaseModel):
    """What is asked for: the body of a request, and the payload of a job."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sources: Sources
    modules: Modules = tuple(Module)
    language: Language = "auto"

    @classmethod
    def read(cls, values: Any) -> Self:
        """A request from plain values; what is wrong is named, as `sources.3.text`."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise _refusal(error) from None

    @property
    def pieces(self) -> list[Piece]:
        """The chunks, source by source."""
        return [Piece(source, module) for source in self.sources for module in self.modules]

    @property
    def arguments(self) -> dict[str, Any]:
        """For the job: `job.enqueue(**request.arguments)`."""
        return {"sources": self.sources, "modules": self.modules, "language": self.language}


def _refusal(error: ValidationError) -> ContractError:
    first = error.errors(include_url=False)[0]
    said = first.get("ctx", {})
    place = [str(part) for part in (*first["loc"], said.get("within")) if part not in ("", None)]
    fix = said.get("fix") or _FIXES.get(first["type"], "see the guide")
    return ContractError(first["msg"], field=".".join(place) or "request", fix=fix)


def cost(request: AnalyzeRequest) -> int:
    """The bytes that are to be read, known without reading them."""
    return sum(source.size for source in request.sources)
