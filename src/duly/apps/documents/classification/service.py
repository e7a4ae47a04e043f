"""Types of documents for the doors: confirmed by people, and where they belong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
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
from duly.apps.documents.schema import fetch_all, fetch_one, statement
from duly.core.errors import Forbidden
from duly.features.audit.service import Audit
from duly.features.pagination import decode_cursor, encode_cursor, page_size
from duly.jobs.application import App
from duly.jobs.handle import Handle
from duly.jobs.job import Job

CLASSIFY = "classify_document"
TRAIN = "train_classifier"
EVALUATE = "evaluate_classifier"
_SHOWN = 100


class UnsurePage(NamedTuple):
    """Some documents to look at, the newest first; `after` asks for those that follow."""

    unsure: Sequence[UnsureDocument]
    after: str | None


class ClassificationService:
    """What visitors say of documents, and what is said to them."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._audit = Audit(app)

    async def classify(
        self,
        who: DocumentPrincipal,
        document_id: UUID,
        *,
        engine: ClassifierEngine = "local",
        consent: bool = False,
    ) -> Handle[Classification]:
        """Have it said anew what a document is; `consent` allows `remote` to send its text elsewhere."""
        job = self._job(who, CLASSIFY).options(subject_id=document_subject(document_id))
        call = job.call(document_id=document_id, engine=engine, consent=consent)
        async with self._app.tenant_session(who.org_id) as conn:
            await lock_document(conn, who, document_id)
            [handle] = await self._app.enqueue_many([call], conn=conn)
            if engine == "remote":
                said = {"engine": engine, "consent": consent}
                await self._note(conn, who, "document.classification_asked", str(document_id), **said)
        return handle

    async def review(
        self, who: DocumentPrincipal, *, after: str | None = None, limit: int = 50
    ) -> UnsurePage:
        """The documents whose type is too unsure to be believed, until somebody says what they are."""
        size = page_size(limit)
        values = {
            "org_id": who.org_id,
            "unsure": OTHER,
            "after": decode_cursor(after, UUID),
            "limit": size + 1,
        }
        async with self._app.tenant_session(who.org_id) as conn:
            found = await fetch_all(
                conn, "classes/review", {**values, "hidden_folders": await hidden_folders(conn, who)}
            )
        unsure = [
            UnsureDocument.model_validate({"document": d, "classification": c}) for d, c in found[:size]
        ]
        more = encode_cursor(unsure[-1].document.document_id) if len(found) > size else None
        return UnsurePage(unsure, more)

    async def train(self, who: DocumentPrincipal) -> Handle[Training]:
        """Have the org's model made anew of what was confirmed."""
        [handle] = await self._app.enqueue_many([self._job(who, TRAIN).call()])
        return handle

    async def evaluate(self, who: DocumentPrincipal) -> Handle[Evaluation]:
        """Have it measured how well the rules and a model do on what was confirmed."""
        [handle] = await self._app.enqueue_many([self._job(who, EVALUATE).call()])
        return handle

    async def confirm(self, who: DocumentPrincipal, document_id: UUID, doc_type: str) -> None:
        """Say what a document is. That counts, whatever is found out later, until somebody says otherwise."""
        values = {"org_id": who.org_id, "document_id": document_id, "doc_type": check_type_name(doc_type)}
        async with self._app.tenant_session(who.org_id) as conn:
            await lock_document(conn, who, document_id)
            await conn.execute(statement("classes/confirm"), {**values, "confirmed_by": who.name})
            await self._note(conn, who, "document.type_confirmed", str(document_id), doc_type=doc_type)

    async def history(self, who: DocumentPrincipal, document_id: UUID) -> ClassificationHistory:
        """What was said of a document, by whom and why."""
        ids = {"org_id": who.org_id, "document_id": document_id, "limit": _SHOWN}
        async with self._app.tenant_session(who.org_id) as conn:
            seen = {**ids, "hidden_folders": await hidden_folders(conn, who)}
            if await fetch_one(conn, "documents/read", seen) is None:
                raise unknown_document()
            said = await fetch_all(conn, "classes/history", seen)
            confirmed = await fetch_all(conn, "classes/confirmations", ids)
        names = tuple(Confirmation.model_fields)
        return ClassificationHistory(
            classifications=[Classification.model_validate(row[0]) for row in said],
            confirmations=[Confirmation(**dict(zip(names, row, strict=True))) for row in confirmed],
        )

    async def filing(self, who: DocumentPrincipal) -> Sequence[FilingRule]:
        """Where documents of each type belong."""
        async with self._app.tenant_session(who.org_id) as conn:
            values = {"org_id": who.org_id, "hidden_folders": await hidden_folders(conn, who)}
            found = await fetch_all(conn, "classes/filing", values)
        return [FilingRule(doc_type=doc_type, node_id=node_id) for doc_type, node_id in found]

    async def set_filing(self, who: DocumentPrincipal, doc_type: str, node_id: UUID | None) -> None:
        """Have documents of a type suggested for a folder; None for no folder any more."""
        values = {"org_id": who.org_id, "doc_type": check_type_name(doc_type), "node_id": node_id}
        verb = "unset_filing" if node_id is None else "set_filing"
        async with self._app.tenant_session(who.org_id) as conn:
            await check_folder_writable(conn, who, node_id)
            await conn.execute(statement(f"classes/{verb}"), {**values, "set_by": who.name})
            await self._note(conn, who, "filing_rule.set", doc_type, node_id=node_id and str(node_id))

    async def models(self, who: DocumentPrincipal) -> Sequence[ClassifierModel]:
        """What was learned from the org's confirmations, the newest first; for who sees all folders."""
        async with self._app.tenant_session(who.org_id) as conn:
            if await hidden_folders(conn, who):
                raise Forbidden("some folders are closed to you", field="authorization", fix="ask an admin")
            found = await fetch_all(conn, "classes/models", {"org_id": who.org_id, "limit": _SHOWN})
        return [ClassifierModel.model_validate(row[0]) for row in found]

    def _job(self, who: DocumentPrincipal, name: str) -> Job[..., Any]:
        again = f"{name}:{uuid4()}"  # asked for again later, it is another one
        return self._app.registry.get(name).options(org_id=who.org_id, actor=who.actor, idempotency_key=again)

    async def _note(
        self, conn: Any, who: DocumentPrincipal, action: str, target_id: str, **detail: Any
    ) -> None:
        await self._audit.record(conn, who.org_id, action, target_id, actor=who.actor, **detail)
