"""Put documents into the index without files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from psycopg.types.json import Jsonb

from duly import Duly
from duly.apps.documents.elements import Passage
from duly.apps.documents.schema import Connection
from duly.apps.documents.search.index import publish
from duly.apps.documents.search.models import Filters, SearchResult
from duly.apps.documents.search.search import search
from tests.apps.documents.stage import visitor


def passages(*texts: str, kind: str = "NarrativeText") -> list[Passage]:
    return [Passage(index=i, page=i + 1, type=kind, text=text) for i, text in enumerate(texts)]


async def insert(conn: Connection, org: UUID, name: str, **more: Any) -> UUID:
    document_id = uuid4()
    values = {"node_id": None, "doc_type": None, "created_at": "2026-01-01", **more}
    values |= {
        "org_id": org,
        "document_id": document_id,
        "name": name,
        "metadata": Jsonb(more.get("metadata", {})),
    }
    await conn.execute(
        """insert into documents.documents (org_id, document_id, name, node_id, doc_type, metadata,
               created_at, sha256, size, media_type, created_by)
           values (%(org_id)s, %(document_id)s, %(name)s, %(node_id)s, %(doc_type)s, %(metadata)s,
               %(created_at)s, repeat('0', 64), 1, 'text/plain', 'user:u1')""",
        values,
    )
    return document_id


@dataclass
class IndexedDocuments:
    """The indexed documents of one org."""

    app: Duly
    org: UUID

    async def put(
        self, name: str, *texts: str, kind: str = "NarrativeText", language: str | None = "de", **more: Any
    ) -> UUID:
        async with self.app.tenant_session(self.org) as conn:
            document_id = await insert(conn, self.org, name, **more)
            await publish(
                conn, self.org, document_id, None, name, passages(*texts, kind=kind), language=language
            )
            return document_id

    async def replace(self, document_id: UUID, name: str, texts: Sequence[str]) -> None:
        async with self.app.tenant_session(self.org) as conn:
            await publish(conn, self.org, document_id, None, name, passages(*texts), language="de")

    async def find(
        self, query: str, filters: Filters | None = None, *, who: str = "u1", **how: Any
    ) -> SearchResult:
        async with self.app.tenant_session(self.org) as conn:
            return await search(conn, visitor(self.org, who), query, filters or Filters(), **how)

    async def names(self, query: str, filters: Filters | None = None, **how: Any) -> list[str]:
        return [hit.name for hit in (await self.find(query, filters, **how)).hits]
