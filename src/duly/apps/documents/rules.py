"""Who sees jobs about documents: whoever may see the documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from uuid import UUID

from duly.apps.documents.access import Visitor, barred, is_admin, private_to
from duly.apps.documents.schema import Connection, rows
from duly.core.principal import Principal
from duly.jobs.application import App

_EVERYTHING = "*"


class SubjectRule:
    """Asked about the subjects of jobs, many at once: `await rule(principal, subject_ids, action)`."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, principal: Principal, subject_ids: Set[str], action: str) -> Set[str]:
        """Those that they may see; what is not about documents is not ours to say."""
        who = Visitor(principal.org_id, principal.actor)
        named = {subject: ident for subject in subject_ids if (ident := _document(subject)) is not None}
        private = {subject for subject in subject_ids if subject.startswith("private:")}
        doubtful = ({*named} | private | {_EVERYTHING} & subject_ids) - {private_to(who)}
        if not doubtful:
            return subject_ids
        async with self._app.tenant_session(who.org_id) as conn:
            if await is_admin(conn, who):
                return subject_ids
            closed = await barred(conn, who)
            seen = await _seen(conn, who, named, closed)
            if _EVERYTHING in doubtful and not closed:
                seen.add(_EVERYTHING)
        return (subject_ids - doubtful) | seen


def _document(subject_id: str) -> UUID | None:
    kind, _, ident = subject_id.partition(":")
    try:
        return UUID(ident) if kind == "document" else None
    except ValueError:
        return None


async def _seen(
    conn: Connection, who: Visitor, named: Mapping[str, UUID], closed: Sequence[UUID]
) -> set[str]:
    """Of a document that is gone nobody knows any more whom it was for: only admins see jobs about it."""
    if not named:
        return set()
    values = {"org_id": who.org_id, "documents": [*named.values()], "barred": closed}
    found = {row[0] for row in await rows(conn, "documents/seen", values)}
    return {subject for subject, document_id in named.items() if document_id in found}
