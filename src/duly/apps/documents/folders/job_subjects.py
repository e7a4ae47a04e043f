"""Subjects of jobs about documents. They decide which principals see a job, its results and its files.

A job about a document has the subject `document:<id>` and is visible to those who may see the document. A job
whose results are for its requester alone has the subject `private:<principal>`.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any
from uuid import UUID

from duly.apps.documents.folders.access import DocumentPrincipal, hidden_folders, is_admin
from duly.apps.documents.schema import fetch_all
from duly.core.job import Actor
from duly.core.outcome import Fail
from duly.core.principal import Principal
from duly.jobs.application import App

_ALL_SUBJECTS = "*"


def document_subject(document_id: UUID | str) -> str:
    """Return the subject of jobs about a document."""
    return f"document:{document_id}"


def private_subject(principal: DocumentPrincipal) -> str:
    """Return the subject of jobs whose results are for one principal."""
    return f"private:{principal.name}"


def subject_from_document(payload: Mapping[str, Any], actor: Actor) -> str | None:
    """Return the subject of a job that has a document in its payload."""
    return document_subject(payload["document_id"])


def subject_from_actor(payload: Mapping[str, Any], actor: Actor) -> str | None:
    """Return the subject of a job whose results are for its requester."""
    return f"private:{actor.type}:{actor.id}"


def check_subject(subject_id: str | None, expected: str) -> None:
    """Fail a job that was enqueued with another subject: principals without access could read its results."""
    if subject_id != expected:
        raise Fail(f"wrong subject: pass subject_id {expected}", code="document.subject_missing")


class DocumentSubjectRule:
    """Decide which subjects a principal may see: `await rule(principal, subject_ids, action)`."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, principal: Principal, subject_ids: Set[str], action: str) -> Set[str]:
        """Return the visible subjects; subjects that are not about documents pass."""
        reader = DocumentPrincipal(principal.org_id, principal.actor)
        documents = {
            subject: document_id for subject in subject_ids if (document_id := _document_id(subject))
        }
        private = {subject for subject in subject_ids if subject.startswith("private:")}
        restricted = ({*documents} | private | {_ALL_SUBJECTS} & subject_ids) - {private_subject(reader)}
        if not restricted:
            return subject_ids
        async with self._app.tenant_session(reader.org_id) as conn:
            if await is_admin(conn, reader):
                return subject_ids
            hidden = await hidden_folders(conn, reader)
            visible_ids: set[UUID] = set()
            if documents:
                # The folder of a deleted document is unknown: only admins see the jobs about it.
                values = {
                    "org_id": reader.org_id,
                    "documents": [*documents.values()],
                    "hidden_folders": hidden,
                }
                rows = await fetch_all(conn, "documents/filter_visible", values)
                visible_ids = {row[0] for row in rows}
        visible = {subject for subject, document_id in documents.items() if document_id in visible_ids}
        if _ALL_SUBJECTS in restricted and not hidden:
            visible.add(_ALL_SUBJECTS)
        return (subject_ids - restricted) | visible


def _document_id(subject_id: str) -> UUID | None:
    kind, _, document_id = subject_id.partition(":")
    try:
        return UUID(document_id) if kind == "document" else None
    except ValueError:
        return None
