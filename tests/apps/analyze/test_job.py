"""The job type `analyze.run` with a running worker."""

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
from duly.apps.analyze.analysis import Analysis
from duly.apps.analyze.request import Module
from duly.apps.analyze.sources import SourceText
from tests.apps.analyze.samples import samples
from tests.worker.working import (
    WAIT_TIMEOUT,
    event_types,
    lose_all_workers,
    run_until_ended,
    seconds,
    silent_worker,
    working,
)

Meanwhile = Callable[[str], Awaitable[None]]


def observe(monkeypatch: pytest.MonkeyPatch, meanwhile: Meanwhile) -> list[str]:
    """Record the chunks as they start; `meanwhile` runs before each of them."""
    started: list[str] = []
    real = Analysis.analyze

    async def analyze(self: Analysis, source: SourceText, module: Module) -> Part:
        started.append(f"{source.name}/{module}")
        await meanwhile(started[-1])
        return await real(self, source, module)

    monkeypatch.setattr(Analysis, "analyze", analyze)
    return started


async def test_chunks_are_partial_results_and_the_job_stores_a_report_in_two_files(
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
    ended = await run_until_ended(app, handle)
    assert (ended.status, ended.outcome, ended.queue) == (Status.COMPLETED, Outcome.SUCCEEDED, "q:planning")
    assert (ended.progress_percent, ended.partial_count) == (100, 60)
    assert ended.summary_counts["total"] == ended.summary_counts["succeeded"] == 60
    assert ended.summary_counts["warnings"] == 1

    partials = {one.chunk_key: one.value for one in await handle.partials()}
    assert list(partials) == [chunk.key for chunk in request.chunks], "source by source"
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


async def test_canceling_between_two_chunks_keeps_the_partial_results(
    app: Duly, acting: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def meanwhile(key: str) -> None:
        if key == "board-minutes.md/size":
            reached.set()
            await go_on.wait()

    started = observe(monkeypatch, meanwhile)
    handle = await declare(app).enqueue(samples(), ["size"])
    async with working(app) as worker:
        await reached.wait()
        await handle.cancel("changed my mind")
        await worker.loop_events.wait("cancel requested")
        go_on.set()
        ended = await handle.wait(WAIT_TIMEOUT)
    assert (ended.status, ended.partial_count) == (Status.CANCELED, 2)
    assert started == ["angebot-reinigung.txt/size", "board-minutes.md/size"]
    assert [Part.model_validate(one.value).source for one in await handle.partials()] == [
        "angebot-reinigung.txt",
        "board-minutes.md",
    ]


async def test_a_second_attempt_runs_only_the_missing_chunks(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached = asyncio.Event()

    async def meanwhile(key: str) -> None:
        if key.startswith("mietvertrag") and not reached.is_set():
            reached.set()
            await asyncio.Event().wait()

    started = observe(monkeypatch, meanwhile)
    handle = await declare(app).enqueue(samples()[:4], ["terms"], "de")
    async with silent_worker(app, sql, drain=seconds(0)):
        await reached.wait()
        await lose_all_workers(app, sql)
    ended = await run_until_ended(app, handle)
    assert (ended.outcome, ended.attempt, ended.partial_count) == (Outcome.SUCCEEDED, 2, 4)
    names = [one["name"] for one in samples()[:4]]
    assert started == [f"{name}/terms" for name in (*names[:3], names[2], names[3])]
    assert "lease_lost" in await event_types(handle)
    assert (await handle.result()).totals.sources == 4


async def test_another_orgs_upload_is_refused_like_an_unknown_one(app: Duly, acting: uuid.UUID) -> None:
    job, blobs = declare(app), (await app.resources()).blobs
    foreign = str(await blobs.put(uuid.uuid4(), b"geheim"))
    unknown = f"blob:{acting}/{'0' * 64}/6"
    messages = []
    for blob in (foreign, unknown):
        handle = await job.enqueue([{"name": "a", "text": "x"}, {"name": "b", "blob": blob}], ["size"], "de")
        ended = await run_until_ended(app, handle)
        assert (ended.outcome, ended.attempt, ended.partial_count) == (Outcome.FAILED, 1, 0)
        messages.append((ended.error_code, ended.error_message))
    assert messages[0] == messages[1]
    assert "sources.1.blob" in str(messages[0])


async def test_a_module_that_fails_for_one_source_does_not_stop_the_others(
    app: Duly, acting: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def meanwhile(key: str) -> None:
        if key == "board-minutes.md/size":
            raise ValueError("unexpected")

    observe(monkeypatch, meanwhile)
    handle = await declare(app).enqueue(samples()[:3], ["size", "likeness"])
    ended = await run_until_ended(app, handle)
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
