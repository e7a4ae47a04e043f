"""How much an org may keep: counted as it comes and goes, in the transaction in which it does."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from duly.apps.documents.errors import QuotaExceeded
from duly.apps.documents.schema import Connection, fetch_one


@dataclass(frozen=True, slots=True)
class Quotas:
    """What an org may keep at most."""

    documents_max: int = 1_000_000
    versions_max: int = 1_000
    """Of one document."""
    bytes_max: int = 2**40
    """Of all versions of all documents, with the uploads that are under way."""

    def check_versions(self, version: int) -> None:
        """Raise if a document may not have so many."""
        if version > self.versions_max:
            raise _exceeded(
                "versions", f"a document has at most {self.versions_max:,} versions", "make it a new one"
            )

    def check(self, documents: int, size: int) -> None:
        """Raise if an org may not keep so many documents, or so many bytes."""
        if documents > self.documents_max:
            raise _exceeded("documents", f"the org may keep {self.documents_max:,} documents", _FIX)
        if size > self.bytes_max:
            raise _exceeded("bytes", f"the org may keep {self.bytes_max:,} bytes", _FIX)


_FIX = "delete some that nobody needs, or ask whoever runs the installation for more"


async def count(
    conn: Connection, org_id: UUID, quotas: Quotas, sha256: str, *, documents: int, size: int
) -> None:
    """So much comes; raise if that is too much. Others of the org wait here: nobody passes it together."""
    values = {"org_id": org_id, "sha256": sha256, "documents": documents, "bytes": size}
    now = await fetch_one(conn, "usage/count", values)
    assert now is not None
    quotas.check(*now)


async def discount(conn: Connection, org_id: UUID, *, size: int) -> None:
    """A document has gone, with so many bytes."""
    await fetch_one(conn, "usage/count", {"org_id": org_id, "sha256": "", "documents": -1, "bytes": -size})


async def check_room(
    conn: Connection, org_id: UUID, quotas: Quotas, *, documents: int, size: int, sha256: str = ""
) -> None:
    """Raise if there is no room for so much as things are, before any of it is taken."""
    now = await fetch_one(conn, "usage/read", {"org_id": org_id, "sha256": sha256})
    kept, held = now or (0, 0)
    quotas.check(kept + documents, held + size)


def _exceeded(field: str, message: str, fix: str) -> QuotaExceeded:
    return QuotaExceeded(message, field=field, fix=fix)
