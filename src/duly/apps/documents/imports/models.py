"""What an import says when it is done."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from duly.apps.documents.imports.providers.remote import Provider, RemoteFile
from duly.apps.documents.imports.remote_paths import kept_path, shown_name
from duly.apps.documents.library.filing import FilingResult

JOB_TYPES: dict[Provider, str] = {
    "dropbox": "import_dropbox",
    "onedrive": "import_onedrive",
    "gdrive": "import_gdrive",
}
State = Literal["new", "changed", "there", "unchanged", "refused"]
_MOST_FAILURES = 100


class Taken(BaseModel):
    """What became of one file: the partial result of its chunk."""

    model_config = ConfigDict(frozen=True)

    remote_id: str
    name: str
    path: str
    state: State
    """`there`: the org had this content already; `unchanged`: another revision of the same content."""
    document_id: UUID | None = None
    version: int | None = None
    error_code: str | None = None
    """Why it was refused."""

    @classmethod
    def of(cls, file: RemoteFile, filed: FilingResult, state: State) -> Taken:
        """A file that is a document now."""
        return cls(
            remote_id=file.remote_id,
            name=shown_name(file.name),
            path=kept_path(file.path),
            state=state,
            document_id=filed.document_id,
            version=filed.version,
        )

    @classmethod
    def refused(cls, path: str, remote_id: str | None, code: str) -> Taken:
        """A file that cannot be had, however often it is tried."""
        shown = kept_path(path)
        return cls(
            remote_id=remote_id or shown, name=shown_name(path), path=shown, state="refused", error_code=code
        )


class NotTaken(BaseModel):
    """A file that cannot be had."""

    path: str
    error_code: str


class Imported(BaseModel):
    """The result."""

    imported_count: int = Field(description="Files that were taken: new ones, and new revisions.")
    document_ids: list[UUID] = Field(description="The documents that they are now.")
    skipped_count: int = Field(description="Files that were there already, or cannot be had as files.")
    failed_count: int = Field(description="Files that could not be taken, now or ever.")
    failures: list[NotTaken] = Field(description="Those that never will, and why; the first hundred.")
    removed_count: int = Field(description="Files that are gone elsewhere. Their documents stay.")


def summed_up(results: Iterable[Any], *, skipped: int, failed: int, removed: int) -> Imported:
    """All chunks together."""
    found = [Taken.model_validate(value) for value in results]
    # One that changed between two attempts has two chunks.
    files = {file.remote_id: file for file in found}.values()
    refused = [file for file in files if file.error_code is not None]
    taken = [file for file in files if file.state in ("new", "changed", "there")]
    return Imported(
        imported_count=len(taken),
        document_ids=list(dict.fromkeys(file.document_id for file in taken if file.document_id)),
        skipped_count=skipped + len(files) - len(taken) - len(refused),
        failed_count=failed + len(refused),
        failures=[NotTaken(path=f.path, error_code=f.error_code or "") for f in refused[:_MOST_FAILURES]],
        removed_count=removed,
    )
