"""The service of classification: classify, review and confirm documents; train models; filing rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from duly.apps.documents.classification.models import (
    OTHER,
    Classification,
    ClassificationHistory,
    ClassifierEngine,
    ClassifierModel,
    Confirmation,
    Evaluation,
    FilingRule,
    Training,
    UnsureDocument,
    check_type_name,
)
from duly.apps.documents.errors import unknown_document
from duly.apps.documents.folders.access import DocumentPrincipal, check_folder_writable, hidden_folders
from duly.apps.documents.folders.job_subjects import document_subject
from duly.apps.documents.library.filing import lock_document
from duly.apps.documents.schema import Connection, fetch_all, fetch_one, statement
from duly.core.errors import Forbidden
from duly.features.audit.service import Audit
from duly.features.pagination import decode_cursor, page_size, split_page
from duly.jobs.application import App
from duly.jobs.handle import Handle
from duly.jobs.job import Job

CLASSIFY = "classify_document"
TRAIN = "train_classifier"
EVALUATE = "evaluate_classifier"
_MAX_HISTORY = 100


@dataclass(frozen=True, slots=True)
class UnsurePage:
    """A page of documents to review, newest first; `after` is the cursor of the next page."""

    unsure: Sequence[UnsureDocument]
    after: str | None


class ClassificationService:
    """Classify documents, confirm their types, train models, and set filing rules."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._audit = Audit(app)

    async def classify(
        self,
        principal: DocumentPrincipal,
        document_id: UUID,
        *,
        engine: ClassifierEngine = "local",
        consent: bool = False,
    ) -> Handle[Classification]:
        """Reclassify a document; `consent` allows `remote` to send its text to an external service."""
        job = self._job(principal, CLASSIFY).options(subject_id=document_subject(document_id))
        call = job.call(document_id=document_id, engine=engine, consent=consent)
        async with self._app.tenant_session(principal.org_id) as conn:
            await lock_document(conn, principal, document_id)
            [handle] = await self._app.enqueue_many([call], conn=conn)
            if engine == "remote":
                detail = {"engine": engine, "consent": consent}
                await self._record(
                    conn, principal, "document.classification_asked", str(document_id), **detail
                )
        return handle

    async def review(
        self, principal: DocumentPrincipal, *, after: str | None = None, limit: int = 50
    ) -> UnsurePage:
        """Return the documents with a type of low confidence that is not confirmed."""
        size = page_size(limit)
        async with self._app.tenant_session(principal.org_id) as conn:
            values = {
                "org_id": principal.org_id,
                "unsure": OTHER,
                "after": decode_cursor(after, UUID),
                "limit": size + 1,
                "hidden_folders": await hidden_folders(conn, principal),
            }
            rows = await fetch_all(conn, "classifications/list_unsure", values)
        unsure = [UnsureDocument.model_validate({"document": d, "classification": c}) for d, c in rows]
        return UnsurePage(*split_page(unsure, size, lambda one: one.document.document_id))

    async def train(self, principal: DocumentPrincipal) -> Handle[Training]:
        """Train the org's model on its confirmed documents."""
        [handle] = await self._app.enqueue_many([self._job(principal, TRAIN).call()])
        return handle

    async def evaluate(self, principal: DocumentPrincipal) -> Handle[Evaluation]:
        """Evaluate the rules and a model on the confirmed documents."""
        [handle] = await self._app.enqueue_many([self._job(principal, EVALUATE).call()])
        return handle

    async def confirm(self, principal: DocumentPrincipal, document_id: UUID, doc_type: str) -> None:
        """Confirm the type of a document; it takes precedence over later classifications."""
        values = {
            "org_id": principal.org_id,
            "document_id": document_id,
            "doc_type": check_type_name(doc_type),
            "confirmed_by": principal.name,
        }
        async with self._app.tenant_session(principal.org_id) as conn:
            await lock_document(conn, principal, document_id)
            await conn.execute(statement("classifications/confirm"), values)
            await self._record(
                conn, principal, "document.type_confirmed", str(document_id), doc_type=doc_type
            )

    async def history(self, principal: DocumentPrincipal, document_id: UUID) -> ClassificationHistory:
        """Return the classifications and confirmations of a document."""
        async with self._app.tenant_session(principal.org_id) as conn:
            values = {
                "org_id": principal.org_id,
                "document_id": document_id,
                "limit": _MAX_HISTORY,
                "hidden_folders": await hidden_folders(conn, principal),
            }
            if await fetch_one(conn, "documents/read", values) is None:
                raise unknown_document()
            classifications = await fetch_all(conn, "classifications/list", values)
            confirmations = await fetch_all(conn, "classifications/list_confirmations", values)
        fields = tuple(Confirmation.model_fields)
        return ClassificationHistory(
            classifications=[Classification.model_validate(row[0]) for row in classifications],
            confirmations=[Confirmation(**dict(zip(fields, row, strict=True))) for row in confirmations],
        )

    async def filing(self, principal: DocumentPrincipal) -> Sequence[FilingRule]:
        """Return the filing rules: the folder for each type."""
        async with self._app.tenant_session(principal.org_id) as conn:
            values = {"org_id": principal.org_id, "hidden_folders": await hidden_folders(conn, principal)}
            rows = await fetch_all(conn, "filing_rules/list", values)
        return [FilingRule(doc_type=doc_type, node_id=node_id) for doc_type, node_id in rows]

    async def set_filing(self, principal: DocumentPrincipal, doc_type: str, node_id: UUID | None) -> None:
        """Set the folder that is suggested for documents of a type; None deletes the rule."""
        values = {
            "org_id": principal.org_id,
            "doc_type": check_type_name(doc_type),
            "node_id": node_id,
            "set_by": principal.name,
        }
        async with self._app.tenant_session(principal.org_id) as conn:
            await check_folder_writable(conn, principal, node_id)
            await conn.execute(statement(f"filing_rules/{'delete' if node_id is None else 'set'}"), values)
            await self._record(conn, principal, "filing_rule.set", doc_type, node_id=node_id and str(node_id))

    async def models(self, principal: DocumentPrincipal) -> Sequence[ClassifierModel]:
        """Return the trained models, newest first; the principal must see all folders."""
        async with self._app.tenant_session(principal.org_id) as conn:
            if await hidden_folders(conn, principal):
                raise Forbidden(
                    "models show documents of all folders, and you may not see some of them",
                    field="authorization",
                    fix="ask an admin",
                )
            rows = await fetch_all(
                conn, "class_models/list", {"org_id": principal.org_id, "limit": _MAX_HISTORY}
            )
        return [ClassifierModel.model_validate(row[0]) for row in rows]

    def _job(self, principal: DocumentPrincipal, job_type: str) -> Job[..., Any]:
        return self._app.registry.get(job_type).options(
            org_id=principal.org_id,
            actor=principal.actor,
            idempotency_key=f"{job_type}:{uuid4()}",  # a repeated request is a new job
        )

    async def _record(
        self, conn: Connection, principal: DocumentPrincipal, action: str, target_id: str, **detail: Any
    ) -> None:
        await self._audit.record(conn, principal.org_id, action, target_id, actor=principal.actor, **detail)
