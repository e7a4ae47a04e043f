"""The job type, with a worker at work."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
import pytest

from duly import Duly, Outcome, Status, errors
from duly.apps.analyze import AnalyzeRequest, Part, Report, analyze_now, declare
from duly.apps.analyze.documents import Document
from duly.apps.analyze.request import Module
from duly.apps.analyze.work import Desk
from tests.apps.analyze.samples import samples
from tests.worker.working import PATIENCE, brief, deaf, done, events, lose_everything, working

Meanwhile = Callable[[str], Awaitable[None]]


def observe(monkeypatch: pytest.MonkeyPatch, meanwhile: Meanwhile) -> list[str]:
    """The chunks as they are begun; the real work goes on when `meanwhile` is over."""
    begun: list[str] = []
    real = Desk.part

    async def part(self: Desk, document: Document, module: Module) -> Part:
        begun.append(f"{document.name}/{module}")
        await meanwhile(begun[-1])
        return await real(self, document, module)

    monkeypatch.setattr(Desk, "part", part)
    return begun


async def test_every_chunk_leaves_its_part_and_the_whole_a_summary_and_two_files(
    app: Duly, acting: uuid.UUID
) -> None:
    job = declare(app)
    assert declare(app) is job
    blobs = (await app.resources()).blobs
    page = await blobs.put(acting, "<html><p>Bis 17. März 2026: 5 €</p>".encode())
    picture = await blobs.put(acting, b"\x89PNG\r\n\0\0")
    uploads = [{"name": "seite.html", "blob": str(page)}, {"name": "bild.png", "blob": str(picture)}]
    request = AnalyzeRequest.read({"sources": [*samples(), *uploads]})
    handle = await job.enqueue(**request.arguments)
    ended = await done(app, handle)
    assert (ended.status, ended.outcome, ended.queue) == (Status.COMPLETED, Outcome.SUCCEEDED, "q:planning")
    assert (ended.progress_percent, ended.partial_count) == (100, 60)
    assert ended.summary_counts["total"] == ended.summary_counts["succeeded"] == 60
    assert ended.summary_counts["warnings"] == 1

    partials = {one.chunk_key: one.value for one in await handle.partials()}
    assert list(partials) == [piece.key for piece in request.pieces], "source by source"
    assert partials["seite.html/figures"]["figures"]["dates"]["items"][0]["value"] == "2026-03-17"
    assert partials["bild.png/terms"] == {"schema_version": 1, "source": "bild.png", "unreadable": "an image"}
    assert max(len(json.dumps(value)) for value in partials.values()) < 10_000

    summary = await handle.result()
    assert (summary.report, summary.readable) == ("report.json", "report.md")
    texts = AnalyzeRequest.read({"sources": samples()})
    at_once = await analyze_now(texts)
    assert summary.timeline.total == at_once.timeline.total + 1
    assert summary.duplicates == at_once.duplicates

    report = Report.model_validate_json(await handle.read("report.json"))
    assert [one.name for one in report.sources] == [source.name for source in request.sources]
    assert report.totals == summary.totals
    assert "### seite.html" in (await handle.read("report.md")).decode()
    assert {file.name: file.content_type.partition(";")[0] for file in await handle.artifacts()} == {
        "report.json": "application/json",
        "report.md": "text/markdown",
    }


async def test_a_cancel_between_two_chunks_keeps_the_parts(
    app: Duly, acting: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def meanwhile(key: str) -> None:
        if key == "board-minutes.md/size":
            reached.set()
            await go_on.wait()

    begun = observe(monkeypatch, meanwhile)
    handle = await declare(app).enqueue(samples(), ["size"])
    async with working(app) as worker:
        await reached.wait()
        await handle.cancel("changed my mind")
        await worker.loop_events.wait("cancel requested")
        go_on.set()
        ended = await handle.wait(PATIENCE)
    assert (ended.status, ended.partial_count) == (Status.CANCELED, 2)
    assert begun == ["angebot-reinigung.txt/size", "board-minutes.md/size"]
    assert [Part.model_validate(one.value).source for one in await handle.partials()] == [
        "angebot-reinigung.txt",
        "board-minutes.md",
    ]


async def test_who_takes_over_does_only_what_is_missing(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached = asyncio.Event()

    async def meanwhile(key: str) -> None:
        if key.startswith("mietvertrag") and not reached.is_set():
            reached.set()
            await asyncio.Event().wait()

    begun = observe(monkeypatch, meanwhile)
    handle = await declare(app).enqueue(samples()[:4], ["terms"], "de")
    async with deaf(app, sql, drain=brief(0)):
        await reached.wait()
        await lose_everything(app, sql)
    ended = await done(app, handle)
    assert (ended.outcome, ended.attempt, ended.partial_count) == (Outcome.SUCCEEDED, 2, 4)
    names = [one["name"] for one in samples()[:4]]
    assert begun == [f"{name}/terms" for name in (*names[:3], names[2], names[3])]
    assert "lease_lost" in await events(handle)
    assert (await handle.result()).totals.sources == 4


async def test_another_orgs_upload_is_refused_like_an_unknown_one(app: Duly, acting: uuid.UUID) -> None:
    job, blobs = declare(app), (await app.resources()).blobs
    foreign = str(await blobs.put(uuid.uuid4(), b"geheim"))
    unknown = f"blob:{acting}/{'0' * 64}/6"
    said = []
    for blob in (foreign, unknown):
        handle = await job.enqueue([{"name": "a", "text": "x"}, {"name": "b", "blob": blob}], ["size"], "de")
        ended = await done(app, handle)
        assert (ended.outcome, ended.attempt, ended.partial_count) == (Outcome.FAILED, 1, 0)
        said.append((ended.error_code, ended.error_message))
    assert said[0] == said[1]
    assert "sources.1.blob" in str(said[0])


async def test_a_module_that_breaks_on_one_text_leaves_the_others(
    app: Duly, acting: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def meanwhile(key: str) -> None:
        if key == "board-minutes.md/size":
            raise ValueError("nobody thought of this")

    observe(monkeypatch, meanwhile)
    handle = await declare(app).enqueue(samples()[:3], ["size", "likeness"])
    ended = await done(app, handle)
    summary = await handle.result()
    assert (ended.outcome, ended.summary_counts["failed"]) == (Outcome.PARTIALLY_SUCCEEDED, 1)
    assert summary.failed.items == ("board-minutes.md/size",)
    assert summary.sources.items[1].words is None


async def test_a_payload_is_checked_before_it_is_stored(app: Duly, acting: uuid.UUID) -> None:
    job = declare(app)
    wrong: list[Any] = [[], [{"name": "a"}], [{"name": "a", "text": "x"}] * 2]
    for sources in wrong:
        with pytest.raises(errors.ContractError) as refused:
            await job.enqueue(sources)
        assert str(refused.value.field).startswith("payload.sources")
    assert (
        json.loads(job.codec.encode_mapping({"sources": [{"name": "a", "text": "x"}]}))["language"] == "auto"
    )
    assert "sources" in job.codec.schema()["properties"]
