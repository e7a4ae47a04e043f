"""Classify documents by the org's model and the rules, and store the classifications."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from psycopg.types.json import Jsonb

from duly.apps.documents.classification.models import Classification, Verdict
from duly.apps.documents.classification.rules import classify_by_rules
from duly.apps.documents.classification.tfidf_model import MAX_MODEL_BYTES, InvalidModel, TfidfModel
from duly.apps.documents.elements import PageElements
from duly.apps.documents.errors import unknown_document
from duly.apps.documents.folders.access import DocumentPrincipal, hidden_folders
from duly.apps.documents.schema import Connection, fetch_one
from duly.blobs import BlobNotFound, BlobStore
from duly.jobs.application import App

log = logging.getLogger("duly.documents")
_MAX_PAGES = 50
_MAX_CACHED_MODELS = 8
_model_cache: dict[tuple[UUID, str], TfidfModel] = {}
"""Models by org and checksum: a model of a checksum never changes."""


class ActiveModel(NamedTuple):
    """The model that an org uses."""

    version: str
    model: TfidfModel


def classify(pages: Sequence[str] | str, name: str = "", active: ActiveModel | None = None) -> Verdict:
    """Return the type of a document with its confidence and evidence, or `other` for review."""
    texts = [pages] if isinstance(pages, str) else pages
    verdict = classify_by_rules(texts, name)
    if active is None:
        return verdict
    return choose_verdict(verdict, active.model.classify(texts, name, active.version), active.model)


def choose_verdict(by_rules: Verdict, by_model: Verdict | None, model: TfidfModel) -> Verdict:
    """Choose the model's verdict, unless only the rules are sure, or the model does not know their type."""
    if by_model is None:
        return by_rules
    is_unknown_to_model = by_rules.doc_type not in model.labels and by_rules.doc_type not in model.mistrusted
    return by_rules if not by_rules.review and (by_model.review or is_unknown_to_model) else by_model


async def classify_pages(
    app: App, principal: DocumentPrincipal, name: str, pages: Sequence[PageElements]
) -> Verdict:
    """Classify extracted pages outside of a transaction, as it takes a moment."""
    async with app.tenant_session(principal.org_id) as conn:
        active = await load_active_model(conn, (await app.resources()).blobs, principal.org_id)
    return await asyncio.to_thread(classify, [page.text for page in pages[:_MAX_PAGES]], name, active)


async def classify_document(
    app: App, conn: Connection, principal: DocumentPrincipal, document_id: UUID, texts: Sequence[str]
) -> Classification:
    """Classify a document by the texts of its pages, and store the classification."""
    values = {"org_id": principal.org_id, "document_id": document_id, "hidden_folders": []}
    row = await fetch_one(conn, "documents/lock", values)
    if row is None:
        raise unknown_document()
    active = await load_active_model(conn, (await app.resources()).blobs, principal.org_id)
    verdict = await asyncio.to_thread(classify, texts, row[1], active)
    return await save_classification(conn, principal, document_id, verdict)


async def save_classification(
    conn: Connection,
    principal: DocumentPrincipal,
    document_id: UUID,
    verdict: Verdict,
    *,
    consent_given_by: str | None = None,
) -> Classification:
    """Store a verdict, and set the type of the document unless a person has confirmed one.

    Return the classification without a restricted folder: everyone who sees the document may read it.
    """
    values = {
        "org_id": principal.org_id,
        "document_id": document_id,
        "doc_type": verdict.doc_type,
        "confidence": verdict.confidence,
        "review": verdict.review,
        "evidence": Jsonb([evidence.model_dump() for evidence in verdict.evidence]),
        "model_version": verdict.model_version,
        "consent_given_by": consent_given_by,
        "hidden_folders": await hidden_folders(conn, principal),
    }
    row = await fetch_one(conn, "classifications/insert", values)
    assert row is not None
    await fetch_one(conn, "classifications/set_document_type", values)
    classification = Classification.model_validate(row[0])
    is_guarded = await fetch_one(conn, "nodes/is_guarded", {"node_id": classification.suggested_node})
    return classification.model_copy(update={"suggested_node": None}) if is_guarded else classification


async def load_active_model(conn: Connection, blobs: BlobStore, org_id: UUID) -> ActiveModel | None:
    """Return the model that the org uses; None if it is missing or invalid, as the rules suffice."""
    row = await fetch_one(conn, "class_models/read_active", {"org_id": org_id})
    if row is None:
        return None
    version, blob, sha256 = row
    try:
        return ActiveModel(version, await _load_model(blobs, org_id, blob, sha256))
    except (BlobNotFound, InvalidModel) as error:
        log.warning("could not load the model %s of org %s: %s", version, org_id, error)
        return None


async def _load_model(blobs: BlobStore, org_id: UUID, blob: str, sha256: str) -> TfidfModel:
    model = _model_cache.get((org_id, sha256))
    if model is None:
        model = await asyncio.to_thread(TfidfModel.load, await _read_blob(blobs, org_id, blob), sha256)
        while len(_model_cache) >= _MAX_CACHED_MODELS:
            _model_cache.pop(next(iter(_model_cache)), None)
        _model_cache[org_id, sha256] = model
    return model


async def _read_blob(blobs: BlobStore, org_id: UUID, blob: str) -> bytes:
    data = b""
    async for chunk in blobs.read_file(org_id, blob):
        data += chunk
        if len(data) > MAX_MODEL_BYTES:
            raise InvalidModel(f"it has more than {MAX_MODEL_BYTES:,} bytes")
    return data
