"""Saying what a document is: its record, and its type unless somebody has confirmed one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from uuid import UUID

from psycopg.types.json import Jsonb

from duly.apps.documents.classification.classifier import Active, classify
from duly.apps.documents.classification.models import Classification, Verdict
from duly.apps.documents.classification.tfidf_model import MOST_BYTES, Model, ModelRefused
from duly.apps.documents.elements import PageElements
from duly.apps.documents.errors import unknown_document
from duly.apps.documents.folders.access import DocumentPrincipal, hidden_folders
from duly.apps.documents.schema import Connection, fetch_one
from duly.blobs import BlobNotFound, BlobStore
from duly.jobs.application import App

log = logging.getLogger("duly.documents")
_PAGES = 50
"""Pages that are looked at, at most."""
_AT_HAND = 8
_READ: dict[tuple[UUID, str], Model] = {}


async def classify_pages(
    app: App, who: DocumentPrincipal, name: str, pages: Sequence[PageElements]
) -> Verdict:
    """What a document is by its name and pages. It takes a moment, so nothing is held meanwhile."""
    async with app.tenant_session(who.org_id) as conn:
        active = await active_model(conn, (await app.resources()).blobs, who.org_id)
    return await asyncio.to_thread(classify, [page.text for page in pages[:_PAGES]], name, active)


async def classified_texts(
    app: App, conn: Connection, who: DocumentPrincipal, document_id: UUID, texts: Sequence[str]
) -> Classification:
    """Say what a document is by the texts of its pages, in their transaction."""
    ids = {"org_id": who.org_id, "document_id": document_id}
    found = await fetch_one(conn, "documents/lock", {**ids, "hidden_folders": []})
    if found is None:
        raise unknown_document()
    active = await active_model(conn, (await app.resources()).blobs, who.org_id)
    verdict = await asyncio.to_thread(classify, texts, found[1], active)
    return await save_classification(conn, who, document_id, verdict)


async def save_classification(
    conn: Connection,
    who: DocumentPrincipal,
    document_id: UUID,
    verdict: Verdict,
    *,
    consent_given_by: str | None = None,
) -> Classification:
    """Write down what was said of a document; as everybody may read it who sees the document."""
    values = {
        "org_id": who.org_id,
        "document_id": document_id,
        "doc_type": verdict.doc_type,
        "confidence": verdict.confidence,
        "review": verdict.review,
        "evidence": Jsonb([one.model_dump() for one in verdict.evidence]),
        "model_version": verdict.model_version,
        "consent_given_by": consent_given_by,
        "hidden_folders": await hidden_folders(conn, who),
    }
    made = await fetch_one(conn, "classes/insert", values)
    assert made is not None
    await fetch_one(conn, "classes/show", values)
    said = Classification.model_validate(made[0])
    guarded = await fetch_one(conn, "nodes/is_guarded", {"node_id": said.suggested_node})
    return said.model_copy(update={"suggested_node": None}) if guarded else said


async def active_model(conn: Connection, blobs: BlobStore, org_id: UUID) -> Active | None:
    """The model that the org works with. One that cannot be trusted is not used: the rules do without it."""
    found = await fetch_one(conn, "classes/active_model", {"org_id": org_id})
    if found is None:
        return None
    version, blob, sha256 = found
    try:
        return Active(version, await _model(blobs, org_id, blob, sha256))
    except (BlobNotFound, ModelRefused) as error:
        log.warning("the model %s of org %s is not used: %s", version, org_id, error)
        return None


async def _model(blobs: BlobStore, org_id: UUID, blob: str, sha256: str) -> Model:
    """Read once: what has this hash does not change."""
    known = _READ.get((org_id, sha256))
    if known is None:
        known = await asyncio.to_thread(Model.read, await _data(blobs, org_id, blob), sha256)
        while len(_READ) >= _AT_HAND:
            _READ.pop(next(iter(_READ)), None)
        _READ[org_id, sha256] = known
    return known


async def _data(blobs: BlobStore, org_id: UUID, blob: str) -> bytes:
    data = b""
    async for chunk in blobs.read_file(org_id, blob):
        data += chunk
        if len(data) > MOST_BYTES:
            raise ModelRefused("it is too large")
    return data
