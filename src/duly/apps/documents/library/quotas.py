"""Quotas of an org: its usage is updated in the transaction that adds or removes documents."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from duly.apps.documents.errors import QuotaExceeded
from duly.apps.documents.schema import Connection, fetch_one

_FIX = "delete documents that are no longer needed, or ask the operator for a larger quota"


@dataclass(frozen=True, slots=True)
class Quotas:
    """The limits of what an org may store."""

    documents_max: int = 1_000_000
    versions_max: int = 1_000
    """Per document."""
    bytes_max: int = 2**40
    """All versions of all documents, and the open uploads."""

    def check_versions(self, version: int) -> None:
        """Raise if a document may not have that many versions."""
        if version > self.versions_max:
            raise QuotaExceeded(
                f"a document has at most {self.versions_max:,} versions",
                field="versions",
                fix="add the file as a new document",
            )

    def check(self, documents: int, size: int) -> None:
        """Raise if an org may not store that many documents or bytes."""
        if documents > self.documents_max:
            message = f"the org may store {self.documents_max:,} documents"
            raise QuotaExceeded(message, field="documents", fix=_FIX)
        if size > self.bytes_max:
            raise QuotaExceeded(f"the org may store {self.bytes_max:,} bytes", field="bytes", fix=_FIX)


async def add_usage(
    conn: Connection, org_id: UUID, quotas: Quotas, sha256: str, *, documents: int, size: int
) -> None:
    """Add documents and bytes to the usage; raise if that exceeds the quotas.

    The row of the org stays locked until the transaction ends, so that two transactions cannot exceed the
    quotas together.
    """
    values = {"org_id": org_id, "sha256": sha256, "documents": documents, "bytes": size}
    usage = await fetch_one(conn, "usage/add", values)
    assert usage is not None
    quotas.check(*usage)


async def subtract_usage(conn: Connection, org_id: UUID, *, size: int) -> None:
    """Subtract a deleted document with all its bytes from the usage."""
    await fetch_one(conn, "usage/add", {"org_id": org_id, "sha256": "", "documents": -1, "bytes": -size})


async def check_quotas(
    conn: Connection, org_id: UUID, quotas: Quotas, *, documents: int, size: int, sha256: str = ""
) -> None:
    """Raise if that many documents and bytes would exceed the quotas; called before anything is received."""
    usage = await fetch_one(conn, "usage/read", {"org_id": org_id, "sha256": sha256})
    stored, stored_bytes = usage or (0, 0)
    quotas.check(stored + documents, stored_bytes + size)
