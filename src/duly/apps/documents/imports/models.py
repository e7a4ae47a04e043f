"""Connectors, and the result of an import."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from duly.apps.documents.imports.providers.remote import Provider, RemoteFile
from duly.apps.documents.imports.remote_paths import display_name, printable_path
from duly.apps.documents.library.filing import FilingResult

JOB_TYPES: dict[Provider, str] = {
    "dropbox": "import_dropbox",
    "onedrive": "import_onedrive",
    "gdrive": "import_gdrive",
}
FolderMode = Literal["keep", "flat"]
"""Recreate remote folders below the connector's folder, or import all files into it."""
ImportState = Literal["new", "changed", "there", "unchanged", "refused"]
_MAX_FAILURES = 100


class Connector(BaseModel):
    """An account at a cloud storage provider."""

    connector_id: UUID
    provider: Provider
    name: str
    secret_ref: str = Field(description="The reference of its secret; the secret cannot be read.")
    account: str | None = Field(description="The name of the account, for people.")
    drive: str | None = Field(description="A drive, shared drive or namespace; null is the account's own.")
    node_id: UUID | None = Field(description="The folder for its documents; null is the root.")
    created_by: str
    created_at: datetime
    disabled_at: datetime | None
    last_import_at: datetime | None


class ImportedFile(BaseModel):
    """The outcome for one file: the partial result of its chunk."""

    model_config = ConfigDict(frozen=True)

    remote_id: str
    name: str
    path: str
    state: ImportState
    """`there`: the org had this content already; `unchanged`: another revision of the same content."""
    document_id: UUID | None = None
    version: int | None = None
    error_code: str | None = None
    """Why the file was refused."""

    @classmethod
    def filed(cls, file: RemoteFile, filed: FilingResult, state: ImportState) -> ImportedFile:
        """Return the outcome for a file that is a document now."""
        return cls(
            remote_id=file.remote_id,
            name=display_name(file.name),
            path=printable_path(file.path),
            state=state,
            document_id=filed.document_id,
            version=filed.version,
        )

    @classmethod
    def refused(cls, path: str, remote_id: str | None, code: str) -> ImportedFile:
        """Return the outcome for a file that cannot be imported, now or later."""
        printable = printable_path(path)
        return cls(
            remote_id=remote_id or printable,
            name=display_name(path),
            path=printable,
            state="refused",
            error_code=code,
        )


class ImportFailure(BaseModel):
    """A file that cannot be imported."""

    path: str
    error_code: str


class ImportResult(BaseModel):
    """The result of an import."""

    imported_count: int = Field(description="The number of imported files: new ones and new revisions.")
    document_ids: list[UUID] = Field(description="The documents of the imported files.")
    skipped_count: int = Field(description="Files that were imported before, or are not files to download.")
    failed_count: int = Field(description="Files that could not be imported, in this import or ever.")
    failures: list[ImportFailure] = Field(
        description="The first hundred files that can never be imported, and why."
    )
    removed_count: int = Field(description="Files that were removed remotely. Their documents stay.")


def summarize(results: Iterable[Any], *, skipped: int, failed: int, removed: int) -> ImportResult:
    """Return the result of an import from the partial results of its chunks."""
    outcomes = [ImportedFile.model_validate(value) for value in results]
    # A file that changed between two attempts has two chunks.
    files = {file.remote_id: file for file in outcomes}.values()
    refused = [file for file in files if file.error_code is not None]
    imported = [file for file in files if file.state in ("new", "changed", "there")]
    failures = [
        ImportFailure(path=file.path, error_code=file.error_code or "") for file in refused[:_MAX_FAILURES]
    ]
    return ImportResult(
        imported_count=len(imported),
        document_ids=list(dict.fromkeys(file.document_id for file in imported if file.document_id)),
        skipped_count=skipped + len(files) - len(imported) - len(refused),
        failed_count=failed + len(refused),
        failures=failures,
        removed_count=removed,
    )
