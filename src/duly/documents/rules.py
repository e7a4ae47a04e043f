"""Who sees jobs about documents: whoever may see the documents."""

from __future__ import annotations

from uuid import UUID

from duly.client.app import App
from duly.documents.access import Visitor, barred, is_admin
from duly.documents.schema import one
from duly.model.access import Principal

_EVERYTHING = "*"


class SubjectRule:
    """Asked about the subject of every job: `await rule(principal, subject_id, action)`."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, principal: Principal, subject_id: str, action: str) -> bool:
        """Whether they may; what is not about documents is not ours to say."""
        kind, _, ident = subject_id.partition(":")
        who = Visitor(principal.org_id, principal.actor)
        if kind == "private":
            return ident == who.principal or await self._is_admin(who)
        if kind == "document":
            return await self._sees(who, ident)
        return subject_id != _EVERYTHING or await self._sees_all(who)

    async def _sees(self, who: Visitor, ident: str) -> bool:
        try:
            document_id = UUID(ident)
        except ValueError:
            return True
        async with self._app.tenant_session(who.org_id) as conn:
            values = {"org_id": who.org_id, "document_id": document_id}
            found = await one(conn, "documents/folder_of", values)
            # Of a document that is gone nobody knows any more whom it was for.
            return await is_admin(conn, who) if found is None else found[0] not in await barred(conn, who)

    async def _sees_all(self, who: Visitor) -> bool:
        async with self._app.tenant_session(who.org_id) as conn:
            return not await barred(conn, who)

    async def _is_admin(self, who: Visitor) -> bool:
        async with self._app.tenant_session(who.org_id) as conn:
            return await is_admin(conn, who)
