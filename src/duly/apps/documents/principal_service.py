"""The base of the services of documents."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any
from uuid import UUID

from duly.apps.documents.folders.access import DocumentPrincipal
from duly.apps.documents.schema import Connection
from duly.features.audit.service import Audit
from duly.jobs.application import App


class PrincipalService:
    """A service whose calls act for a principal: in transactions of its org, audited under its name."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._audit = Audit(app)

    def _session(self, principal: DocumentPrincipal) -> AbstractAsyncContextManager[Connection]:
        return self._app.tenant_session(principal.org_id)

    async def _record(
        self,
        conn: Connection,
        principal: DocumentPrincipal,
        action: str,
        target_id: UUID | str,
        *,
        reason: str | None = None,
        **detail: Any,
    ) -> None:
        """Write an audit entry in the transaction of the change."""
        await self._audit.record(
            conn, principal.org_id, action, str(target_id), actor=principal.actor, reason=reason, **detail
        )
