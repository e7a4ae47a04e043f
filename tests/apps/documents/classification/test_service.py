"""Classification with a running worker: stored, confirmed, trained, evaluated; orgs are isolated."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from duly import Duly, Outcome
from duly.apps.documents.classification import classifier
from duly.apps.documents.classification.jobs import declare
from duly.apps.documents.classification.models import Training
from duly.apps.documents.classification.service import ClassificationService
from duly.apps.documents.elements import Element, PageElements
from duly.apps.documents.errors import UnknownDocument, UnknownFolder
from duly.blobs import BlobStore, TenantFile
from tests.apps.documents.classification.samples import Sample, samples
from tests.apps.documents.classification.stored_documents import Sql, folder, put, shown, visitor
from tests.worker.working import WAIT_TIMEOUT, run_until_ended, until, working

_A_SESSION_WAITS = """
    select exists (select from pg_locks l join pg_database d on d.oid = l.database
                   where d.datname = current_database() and l.locktype = 'advisory' and not l.granted)
"""
_INVOICE = next(one for one in samples(1) if one.doc_type == "invoice")


@pytest.fixture
def classes(app: Duly) -> ClassificationService:
    declare(app)
    return ClassificationService(app)


def _some(*doc_types: str, seed: int = 1) -> Sequence[Sample]:
    return [one for one in samples(8, seed) if one.doc_type in doc_types]


async def _trained(classes: ClassificationService, org: uuid.UUID) -> Training:
    return await (await classes.train(visitor(org))).result(WAIT_TIMEOUT)


async def _teach(
    classes: ClassificationService, sql: Sql, org: uuid.UUID, letters: str = "house_notice"
) -> None:
    for one in _some("invoice", "reminder", "letter"):
        said = letters if one.doc_type == "letter" else one.doc_type
        await classes.confirm(visitor(org), put(sql, org, one.pages), said)


async def test_a_document_is_classified_with_evidence_and_a_suggested_folder(
    app: Duly, acting: uuid.UUID, sql: Sql, classes: ClassificationService
) -> None:
    node = folder(sql, acting, "Rechnungen")
    await classes.set_filing(visitor(acting), "invoice", node)
    document_id = put(sql, acting, _INVOICE.pages)
    handle = await classes.classify(visitor(acting), document_id)
    assert (await run_until_ended(app, handle)).outcome is Outcome.SUCCEEDED
    said = await handle.result()
    assert (said.doc_type, said.review, said.suggested_node) == ("invoice", False, node)
    assert said.model_version == "rules-1"
    assert said.evidence[0].text in " ".join(_INVOICE.pages[0].split())
    assert shown(sql, document_id) == ("invoice", False)
    history = await classes.history(visitor(acting), document_id)
    assert history.classifications == [said]
    await classes.set_filing(visitor(acting), "invoice", None)
    assert await classes.filing(visitor(acting)) == []


async def test_the_result_of_a_job_names_no_restricted_folder(
    app: Duly, acting: uuid.UUID, sql: Sql, classes: ClassificationService
) -> None:
    """Everyone who sees the document may read the result; the history is filtered for its reader."""
    node, boss = folder(sql, acting, "Vorstand", only_for="user:boss"), visitor(acting, "boss")
    sql.execute("update documents.node_grants set level = 'manage'")
    await classes.set_filing(boss, "invoice", node)
    document_id = put(sql, acting, _INVOICE.pages)
    handle = await classes.classify(boss, document_id)
    await run_until_ended(app, handle)
    assert (await handle.result()).suggested_node is None
    for who, suggested in ((boss, node), (visitor(acting), None)):
        [said] = (await classes.history(who, document_id)).classifications
        assert said.suggested_node == suggested


async def test_a_confirmed_type_survives_later_classifications(
    app: Duly, acting: uuid.UUID, sql: Sql, classes: ClassificationService
) -> None:
    document_id = put(sql, acting, _INVOICE.pages)
    who = visitor(acting)
    await classes.confirm(who, document_id, "letter")
    await classes.confirm(who, document_id, "contract")
    page = PageElements(number=1, state="text", elements=(Element(type="Title", text=_INVOICE.pages[0]),))
    verdict = await classifier.classify_pages(app, who, "a.pdf", [page])
    async with app.tenant_session(acting) as conn:  # as an extraction does
        said = await classifier.save_classification(conn, who, document_id, verdict)
    assert said.doc_type == "invoice"
    assert shown(sql, document_id) == ("contract", True)
    history = await classes.history(who, document_id)
    assert [one.doc_type for one in history.confirmations] == ["contract", "letter"]
    assert {one.confirmed_by for one in history.confirmations} == {"user:u1"}
    noted = sql.execute("select action from duly.audit_entries where action ~ '^document'").fetchall()
    assert noted == [("document.type_confirmed",)] * 2


async def test_foreign_and_hidden_documents_and_folders_are_unknown(
    acting: uuid.UUID, sql: Sql, classes: ClassificationService
) -> None:
    other, who = uuid.uuid4(), visitor(acting)
    sql.execute("insert into duly.organizations (org_id, name) values (%s, 'Other')", [other])
    closed = folder(sql, acting, "Vorstand", only_for="user:boss")
    theirs, hidden = put(sql, other, _INVOICE.pages), put(sql, acting, _INVOICE.pages, node=closed)
    for document_id in (uuid.uuid4(), theirs, hidden):
        for attempt in (
            classes.confirm(who, document_id, "invoice"), classes.history(who, document_id),
            classes.classify(who, document_id),
        ):  # fmt: skip
            with pytest.raises(UnknownDocument, match="no such document"):
                await attempt
    for node_id in (uuid.uuid4(), closed, folder(sql, other, "Theirs")):
        with pytest.raises(UnknownFolder, match="no such folder"):
            await classes.set_filing(who, "invoice", node_id)
    await classes.set_filing(visitor(acting, "boss"), "invoice", closed)
    assert await classes.filing(who) == []


async def test_a_job_has_only_the_permissions_of_its_actor(
    app: Duly, acting: uuid.UUID, sql: Sql, classes: ClassificationService
) -> None:
    closed = folder(sql, acting, "Vorstand", only_for="user:boss")
    hidden, empty = put(sql, acting, _INVOICE.pages, node=closed), put(sql, acting, [])
    job = app.registry.get("classify_document")
    boss = visitor(acting, "boss").actor
    expected = {
        await job.enqueue(document_id=hidden): "document.unknown",
        await job.options(actor=boss, idempotency_key="boss", subject_id="another").enqueue(
            document_id=hidden
        ): "document.subject_missing",
        await job.enqueue(document_id=empty): "document.no_text",
        await job.enqueue(document_id=uuid.uuid4()): "document.unknown",
    }
    async with working(app):
        ended = {handle: await handle.wait(WAIT_TIMEOUT) for handle in expected}
    assert {handle: one.error_code for handle, one in ended.items()} == expected
    assert sql.execute("select count(*) from documents.classifications").fetchone() == (0,)


async def test_a_model_is_trained_on_its_org_and_used_by_no_other(
    app: Duly, acting: uuid.UUID, sql: Sql, classes: ClassificationService
) -> None:
    other = uuid.uuid4()
    sql.execute("insert into duly.organizations (org_id, name) values (%s, 'Other')", [other])
    for one in _some("contract"):  # what others confirm is theirs
        await classes.confirm(visitor(other), put(sql, other, one.pages), "invoice")
    await _teach(classes, sql, acting)
    letter = _some("letter", seed=5)[0]
    mine, theirs = put(sql, acting, letter.pages), put(sql, other, letter.pages)
    async with working(app):
        trained = await _trained(classes, acting)
        refused = await (await classes.train(visitor(other))).wait(WAIT_TIMEOUT)
        said = await (await classes.classify(visitor(acting), mine)).result(WAIT_TIMEOUT)
        plain = await (await classes.classify(visitor(other), theirs)).result(WAIT_TIMEOUT)
    assert (trained.active, trained.examples) == (True, 48)
    assert trained.labels == ["house_notice", "invoice", "reminder"]
    assert trained.accuracy > trained.rules_accuracy
    assert (said.doc_type, said.model_version) == ("house_notice", trained.model_version)
    assert (refused.outcome, refused.error_code) == (Outcome.BLOCKED, "classes.too_few")
    assert "16 different documents are confirmed" in str(refused.error_message)
    assert (plain.doc_type, plain.model_version) == ("letter", "rules-1")
    [known] = await classes.models(visitor(acting))
    assert (known.model_version, known.active) == (trained.model_version, True)
    assert await classes.models(visitor(other)) == []


async def test_a_model_with_a_wrong_checksum_is_not_used(
    app: Duly,
    acting: uuid.UUID,
    sql: Sql,
    classes: ClassificationService,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await _teach(classes, sql, acting)
    document_id = put(sql, acting, _INVOICE.pages)
    async with working(app):
        trained = await _trained(classes, acting)
        [file] = (tmp_path / "blobs").rglob(f"{trained.model_version}.json")
        file.write_bytes(file.read_bytes().replace(b'"temperature":', b'"temperature": '))
        said = await (await classes.classify(visitor(acting), document_id)).result(WAIT_TIMEOUT)
    assert (said.doc_type, said.model_version) == ("invoice", "rules-1")
    assert "the checksum does not match" in caplog.text


async def test_a_new_model_replaces_the_active_one_and_old_files_are_removed(
    app: Duly, acting: uuid.UUID, sql: Sql, classes: ClassificationService, tmp_path: Path
) -> None:
    await _teach(classes, sql, acting)
    async with working(app):
        first = await _trained(classes, acting)
        extra = _some("letter", seed=6)[0]
        await classes.confirm(visitor(acting), put(sql, acting, extra.pages), "house_notice")
        second = await _trained(classes, acting)
        await classes.confirm(visitor(acting), put(sql, acting, ["Noch ein Brief an alle"]), "house_notice")
        third = await _trained(classes, acting)
    known = {one.model_version: one.active for one in await classes.models(visitor(acting))}
    assert known == {first.model_version: False, second.model_version: False, third.model_version: True}
    assert {file.stem for file in (tmp_path / "blobs").rglob("model-*.json")} == {
        second.model_version, third.model_version,
    }  # fmt: skip


async def test_concurrent_trainings_leave_an_active_model_with_its_file(
    app: Duly, acting: uuid.UUID, sql: Sql, classes: ClassificationService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second must wait: it would remove the file of the first before a row names it."""
    await _teach(classes, sql, acting)
    keep, held = BlobStore.write_file, iter([True])

    async def slow(store: BlobStore, *what: Any) -> TenantFile:
        kept = await keep(store, *what)
        if next(held, False):
            await until(sql, _A_SESSION_WAITS)
        return kept

    monkeypatch.setattr(BlobStore, "write_file", slow)
    async with working(app):
        for handle in [await classes.train(visitor(acting)) for _ in range(2)]:
            assert (await handle.wait(WAIT_TIMEOUT)).outcome is Outcome.SUCCEEDED
    async with app.tenant_session(acting) as conn:
        assert await classifier.load_active_model(conn, (await app.resources()).blobs, acting) is not None


async def test_an_evaluation_stores_confusion_matrices(
    app: Duly, acting: uuid.UUID, sql: Sql, classes: ClassificationService
) -> None:
    async with working(app):
        nothing = await (await classes.evaluate(visitor(acting))).wait(WAIT_TIMEOUT)
        await classes.confirm(visitor(acting), put(sql, acting, _INVOICE.pages), "letter")
        early = await (await classes.evaluate(visitor(acting))).result(WAIT_TIMEOUT)
        await _teach(classes, sql, acting)
        handle = await classes.evaluate(visitor(acting))
        report = await handle.result(WAIT_TIMEOUT)
    assert (nothing.outcome, nothing.error_code) == (Outcome.BLOCKED, "classes.too_few")
    assert early.rules.matrix == {"letter": {"invoice": 1}}
    assert early.model is None
    assert "training needs 30 documents" in str(early.why_no_model)
    assert report.model is not None
    for measure in (report.rules, report.model):
        assert sum(sum(row.values()) for row in measure.matrix.values()) == report.documents == 48
    assert report.rules.matrix["house_notice"] == {"letter": 16}
    kept: dict[str, Any] = json.loads(await handle.read("evaluation.json"))
    assert kept["model"]["matrix"] == report.model.matrix
    rows = (await handle.read("evaluation.csv")).decode().splitlines()
    assert "rules,house_notice,letter,16" in rows
    assert await classes.models(visitor(acting)) == [], "an evaluation stores no model"


def test_the_old_name_of_the_service_is_deprecated(app: Duly) -> None:
    with pytest.deprecated_call(match="Documents.classes is deprecated: use classification"):
        assert app.documents.classes is app.documents.classification
