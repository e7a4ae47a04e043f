"""What is kept of imports: how far folders were read, and which file is which document."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from duly.apps.documents.imports.providers.remote import Gone, RemoteFile
from duly.apps.documents.imports.remote_paths import kept_path
from duly.apps.documents.library.filing import FilingResult
from duly.apps.documents.schema import Connection, fetch_all, fetch_one, statement


class Known(NamedTuple):
    """A file that was taken before."""

    revision: str
    document_id: UUID | None
    version: int | None
    job_id: UUID
    removed: bool


@dataclass(frozen=True, slots=True)
class Records:
    """The records of one connector, as one job sees them."""

    org_id: UUID
    connector_id: UUID
    job_id: UUID
    session: Callable[[], AbstractAsyncContextManager[Connection]]

    def values(self, **more: Any) -> dict[str, Any]:
        """The parameters of a statement."""
        return {"org_id": self.org_id, "connector_id": self.connector_id, **more}

    async def cursor(self, remote_path: str) -> str | None:
        """How far a folder was read."""
        async with self.session() as conn:
            found = await fetch_one(conn, "connectors/read_cursor", self.values(remote_path=remote_path))
        return None if found is None else str(found[0])

    async def move(self, remote_path: str, before: str | None, cursor: str) -> None:
        """It was read this far; unless somebody else has moved the cursor meanwhile, who was as thorough."""
        values = self.values(remote_path=remote_path, before=before, cursor=cursor)
        async with self.session() as conn:
            await conn.execute(statement("connectors/keep_cursor"), values)

    async def known(self, remote_ids: Iterable[str]) -> dict[str, Known]:
        """What was taken of these."""
        async with self.session() as conn:
            return await self._known(conn, list(remote_ids))

    async def lock(self, conn: Connection, file: RemoteFile) -> Known | None:
        """What was taken of this one; nobody else takes it until the transaction ends."""
        values = self.values(remote_id=file.remote_id)
        await conn.execute(statement("connectors/lock_file"), values)
        return (await self._known(conn, [file.remote_id])).get(file.remote_id)

    async def is_shared(self, conn: Connection, file: RemoteFile, document_id: UUID) -> bool:
        """Whether the document stands for another file as well."""
        values = self.values(remote_id=file.remote_id, document_id=document_id)
        found = await fetch_one(conn, "connectors/is_shared", values)
        return found is not None and bool(found[0])

    async def keep(self, conn: Connection, file: RemoteFile, filed: FilingResult) -> None:
        """The file is this document."""
        values = self.values(
            remote_id=file.remote_id,
            revision=file.revision,
            remote_path=kept_path(file.path),
            checksum=file.checksum,
            document_id=filed.document_id,
            version=filed.version,
            job_id=self.job_id,
        )
        await conn.execute(statement("connectors/keep_file"), values)

    async def note_removed(self, gone: Iterable[Gone]) -> int:
        """Files that are no longer there; how many of them we had."""
        told = list(gone)
        values = self.values(
            remote_ids=[one.remote_id for one in told if one.remote_id],
            paths=[kept_path(one.path) for one in told if one.path],
        )
        async with self.session() as conn:
            return len(await fetch_all(conn, "connectors/note_removed", values))

    async def note_import(self) -> None:
        """An import has come to its end."""
        async with self.session() as conn:
            await conn.execute(statement("connectors/note_import"), self.values())

    async def _known(self, conn: Connection, remote_ids: list[str]) -> dict[str, Known]:
        found = await fetch_all(conn, "connectors/read_files", self.values(remote_ids=remote_ids))
        return {row[0]: Known(*row[1:]) for row in found}
