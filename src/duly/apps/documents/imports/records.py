"""The records of imports: the cursor of each remote folder, and the document of each remote file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from duly.apps.documents.imports.providers.remote import RemoteFile, RemovedFile
from duly.apps.documents.imports.remote_paths import printable_path
from duly.apps.documents.library.filing import FilingResult
from duly.apps.documents.schema import Connection, fetch_all, fetch_one, statement


class FileRecord(NamedTuple):
    """A remote file that was imported before."""

    revision: str
    document_id: UUID | None
    version: int | None
    job_id: UUID
    removed: bool


@dataclass(frozen=True, slots=True)
class ImportRecords:
    """The records of one connector, for one job."""

    org_id: UUID
    connector_id: UUID
    job_id: UUID
    session: Callable[[], AbstractAsyncContextManager[Connection]]

    def _values(self, **values: Any) -> dict[str, Any]:
        return {"org_id": self.org_id, "connector_id": self.connector_id, **values}

    async def read_cursor(self, remote_path: str) -> str | None:
        """Return the cursor up to which a folder was imported."""
        async with self.session() as conn:
            row = await fetch_one(conn, "connectors/read_cursor", self._values(remote_path=remote_path))
        return None if row is None else str(row[0])

    async def save_cursor(self, remote_path: str, before: str | None, cursor: str) -> None:
        """Save a cursor, unless another import has moved it meanwhile: that one was as thorough."""
        values = self._values(remote_path=remote_path, before=before, cursor=cursor)
        async with self.session() as conn:
            await conn.execute(statement("connectors/save_cursor"), values)

    async def read_files(self, remote_ids: Iterable[str]) -> dict[str, FileRecord]:
        """Return the records of remote files by id."""
        async with self.session() as conn:
            return await self._read_files(conn, list(remote_ids))

    async def lock_file(self, conn: Connection, file: RemoteFile) -> FileRecord | None:
        """Return the record of a file, and lock it against other imports until the transaction ends."""
        await conn.execute(statement("connectors/lock_file"), self._values(remote_id=file.remote_id))
        return (await self._read_files(conn, [file.remote_id])).get(file.remote_id)

    async def is_shared(self, conn: Connection, file: RemoteFile, document_id: UUID) -> bool:
        """Return whether the document also stands for another remote file."""
        values = self._values(remote_id=file.remote_id, document_id=document_id)
        row = await fetch_one(conn, "connectors/is_shared", values)
        return row is not None and bool(row[0])

    async def save_file(self, conn: Connection, file: RemoteFile, filed: FilingResult) -> None:
        """Record the document and version of a file."""
        values = self._values(
            remote_id=file.remote_id,
            revision=file.revision,
            remote_path=printable_path(file.path),
            checksum=file.checksum,
            document_id=filed.document_id,
            version=filed.version,
            job_id=self.job_id,
        )
        await conn.execute(statement("connectors/save_file"), values)

    async def mark_removed(self, removed: Iterable[RemovedFile]) -> int:
        """Mark files as removed remotely; return how many of them had been imported."""
        entries = list(removed)
        values = self._values(
            remote_ids=[entry.remote_id for entry in entries if entry.remote_id],
            paths=[printable_path(entry.path) for entry in entries if entry.path],
        )
        async with self.session() as conn:
            return len(await fetch_all(conn, "connectors/mark_removed", values))

    async def record_import(self) -> None:
        """Record that an import has ended."""
        async with self.session() as conn:
            await conn.execute(statement("connectors/record_import"), self._values())

    async def _read_files(self, conn: Connection, remote_ids: list[str]) -> dict[str, FileRecord]:
        rows = await fetch_all(conn, "connectors/read_files", self._values(remote_ids=remote_ids))
        return {row[0]: FileRecord(*row[1:]) for row in rows}
