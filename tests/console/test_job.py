"""The page of one job: its content, access to it, and its actions."""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from html import unescape
from typing import Any

import psycopg
import pytest
from fastapi import FastAPI

from duly import Actor, Context, Duly, Fail, context
from duly.core.job import SYSTEM_ORG
from duly.http.options import HttpOptions
from tests.console.conftest import OPERATOR, PLATFORM, Arrives, Person, Post, words
from tests.worker.working import (
    ONE_ATTEMPT,
    RETRY_AT_ONCE,
    lose_all_workers,
    run_until_ended,
    silent_worker,
    working,
)

SECRET = "ada.lovelace@example.org"


@pytest.fixture
def options() -> HttpOptions:
    async def may(who: Any, subject_id: str, action: str) -> bool:
        return subject_id != "hidden" and (action == "read" or subject_id != "locked")

    return HttpOptions(may=may)


@pytest.fixture
def mail(app: Duly) -> Any:
    @app.job("mail.send", retry=ONE_ATTEMPT)
    async def send(ctx: Context, to: str, size: int = 1, note: str = "") -> int:
        ctx.log.warning("about to send <b>%d</b>", size)
        if size < 2:
            raise ConnectionError("the <i>provider</i> hung up")
        return size

    return send


async def test_the_page_of_a_dead_job_shows_error_log_and_events(
    app: Duly, mail: Any, acting: uuid.UUID, viewer: Person, operator: Person
) -> None:
    handle = await mail.options(subject_id="doc-7", traceparent=None).enqueue(SECRET)
    await run_until_ended(app, handle)
    for person in (viewer, operator):
        answer = await person.get(f"/console/jobs/{handle.job_id}")
        assert answer.status_code == 200
        said = words(answer)
        for text in (
            "mail.send",
            "Failed for good at",
            "connection_error: the <i>provider</i> hung up",
            "about to send <b>1</b>",
            "Dead-lettered",
            "doc-7",
            "1 / 1",
            "user:u1",
            "tests/console/test_job.py",
        ):
            assert text in said, text
        assert SECRET not in unescape(answer.text)
        assert '"to": "[email]"' in said
        assert "duly enqueue mail.send" in said
        assert 'curl -X POST "$DULY_URL/v1/jobs"' in said
        assert "$DULY_KEY" in said
        acts = re.findall(r'action="[^"]*/jobs/[^"]*/(\w+)"', answer.text)
        assert acts == ([] if person is viewer else ["replay", "discard"])
    german = words(await viewer.get(f"/console/jobs/{handle.job_id}?lang=de"))
    assert "nach 1 Versuch endgültig fehlgeschlagen und jetzt ein Dead Letter" in german
    assert "Als Dead Letter abgelegt" in german


async def test_jobs_of_other_orgs_and_inaccessible_subjects_are_not_found(
    app: Duly, mail: Any, acting: uuid.UUID, arrives: Arrives, operator: Person
) -> None:
    theirs = uuid.uuid4()
    await app.create_org(theirs, "Other")
    with context(org_id=theirs, actor=Actor.user("x")):
        other = await mail.enqueue("a")
    hidden = await mail.options(subject_id="hidden").enqueue("b")
    said = set()
    for job in (other.job_id, hidden.job_id, uuid.uuid4(), "x", "%00"):
        for path in (f"/console/jobs/{job}", f"/console/jobs/{job}/fix"):
            for more in ("", f"?org={theirs}"):
                answer = await operator.get(path + more)
                assert answer.status_code == 404
                said.add(words(answer))
        for act in ("cancel", "replay", "discard", "fix"):
            answer = await Post(operator)(f"/console/jobs/{job}/{act}", reason="x", payload="{}")
            assert answer.status_code == 404
            said.add(words(answer))
    assert len(said) == 1
    boss = await arrives(*PLATFORM, org=SYSTEM_ORG)
    assert (await boss.get(f"/console/jobs/{other.job_id}?org={theirs}")).status_code == 200
    assert (await boss.get(f"/console/jobs/{other.job_id}")).status_code == 404


async def test_read_access_does_not_imply_change_access(
    mail: Any, acting: uuid.UUID, operator: Person, viewer: Person
) -> None:
    locked = await mail.options(subject_id="locked").enqueue("a")
    place = f"/console/jobs/{locked.job_id}"
    assert (await operator.get(place)).status_code == 200
    assert (await Post(operator)(f"{place}/cancel", reason="x")).status_code == 404
    plain = await mail.enqueue("b")
    for act in ("cancel", "replay", "discard", "fix"):
        answer = await Post(viewer)(f"/console/jobs/{plain.job_id}/{act}", reason="x", payload="{}")
        assert answer.status_code == 403
    assert (await viewer.get(f"/console/jobs/{plain.job_id}/fix")).status_code == 403
    assert (await plain.status()).status == "queued"


async def test_a_job_is_canceled_replayed_and_discarded_for_a_reason(
    app: Duly, mail: Any, acting: uuid.UUID, operator: Person
) -> None:
    post, waiting = Post(operator), await mail.enqueue("a")
    place = f"/console/jobs/{waiting.job_id}"
    refused = await post(f"{place}/cancel", reason=" ")
    assert refused.status_code == 422
    assert "reason" in words(refused)
    answer = await post(f"{place}/cancel", reason="no longer wanted")
    assert answer.headers["location"] == place
    assert "Job canceled." in words(await operator.get(place))
    assert "no longer wanted" in words(await operator.get(place))
    replayed = await post(f"{place}/replay", reason="it is wanted after all")
    assert replayed.status_code == 303
    again = replayed.headers["location"]
    assert "Replay created." in words(await operator.get(again))
    assert "Replay of" in words(await operator.get(again))
    assert "Replayed by" in words(await operator.get(place))
    async with working(app) as worker:
        await worker.loop_events.wait("settled", 1)
    assert (await post(f"{again}/discard", reason="nobody needs it")).status_code == 303
    said = words(await operator.get(again))
    assert "nobody needs it" in said
    assert "Discarded by api_key:" in said


async def test_a_payload_is_fixed_without_revealing_secrets(
    app: Duly, mail: Any, acting: uuid.UUID, operator: Person, sql: psycopg.Connection
) -> None:
    handle = await mail.enqueue(SECRET, note="a")
    await run_until_ended(app, handle)
    place = f"/console/jobs/{handle.job_id}/fix"
    form = await operator.get(place)
    assert SECRET not in unescape(form.text)
    [typed] = re.findall(r"<textarea[^>]*>([^<]*)</textarea>", form.text)
    payload = json.loads(unescape(typed))
    assert payload == {"to": "[email]", "size": 1, "note": "a"}
    assert "size integer" in words(form)
    for wrong, field in (
        ('{"to": "[email]", "size": "<b>many</b>", "cc": 1}', ("payload.size", "payload.cc")),
        ('{"to": "[email]", "note": "[email]"}', ("payload.note",)),
        ("{not json", ("payload",)),
        ("[1]", ("payload",)),
    ):
        refused = await Post(operator)(place, reason="bigger", payload=wrong)
        assert refused.status_code == 422
        assert wrong in unescape(refused.text), "what was typed is kept"
        assert all(name in words(refused) for name in field)
        assert SECRET not in unescape(refused.text)
    assert sql.execute("select count(*) from duly.job_records").fetchone() == (1,)
    made = await Post(operator)(place, reason="bigger", payload=json.dumps({**payload, "size": 2}))
    assert made.status_code == 303
    new = made.headers["location"].rpartition("/")[2]
    row = sql.execute("select payload, replay_of from duly.job_records where job_id = %s", [new]).fetchone()
    assert row == ({"to": SECRET, "size": 2, "note": "a"}, handle.job_id)


async def test_a_job_of_an_unknown_type_can_only_be_replayed_unchanged(
    app: Duly, mail: Any, acting: uuid.UUID, operator: Person
) -> None:
    handle = await mail.enqueue("a")
    await run_until_ended(app, handle)
    del app.registry._jobs["mail.send"]
    place = f"/console/jobs/{handle.job_id}"
    form = await operator.get(f"{place}/fix")
    assert "does not know the job type mail.send" in words(form)
    assert "<textarea" not in form.text
    sent = await Post(operator)(f"{place}/fix", reason="x", payload='{"to": "b"}')
    assert sent.status_code == 422
    assert (await Post(operator)(f"{place}/replay", reason="x")).status_code == 303


async def test_the_timeline_shows_a_lost_worker_and_the_takeover(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection, viewer: Person, platform: Person
) -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    @app.job("slow.work", retry=RETRY_AT_ONCE)
    async def slow(ctx: Context) -> int:
        for n in range(3):
            await ctx.partial({"n": n, "kept": [1]}, percent=n + 1)
        if ctx.job.attempt == 1:
            started.set()
            await go_on.wait()
        return ctx.job.attempt

    handle = await slow.enqueue()
    async with silent_worker(app, sql) as old:
        await started.wait()
        await lose_all_workers(app, sql)
        async with working(app):
            await handle.wait(20)
        go_on.set()
        await old.loop_events.wait("lost")
        name = str(old.worker_id)[:8]
    place = f"/console/jobs/{handle.job_id}"
    mine = await viewer.get(f"{place}?a=1&b=3")
    said = words(mine)
    for text in (
        "Attempt 1 Worker 1",
        "Attempt 2 Worker 2",
        "Lease lost",
        "Taken over",
        "Late write rejected (done)",
        "Reconciled: the worker stopped sending heartbeats",
        "run.infrastructure_timeout_or_abandonment",
        "n changed 0 2",
    ):
        assert text in said, text
    assert name not in mine.text, "who of the installation did the work is not for the org"
    theirs = await platform.get(f"{place}?org={acting}")
    assert f"Worker 1 ({name})" in words(theirs)
    assert " style=" not in theirs.text
    assert (await viewer.get(f"{place}?a=x&b=99999999999")).status_code == 200


async def test_an_org_cannot_change_internal_jobs(
    app: Duly, api: FastAPI, acting: uuid.UUID, arrives: Arrives, operator: Person
) -> None:
    @app.job("duly.own", retry=ONE_ATTEMPT)
    async def own() -> None:
        raise Fail("no")

    handle = await own.enqueue()
    await run_until_ended(app, handle)
    place = f"/console/jobs/{handle.job_id}"
    answer = await operator.get(place)
    assert "/replay" not in answer.text
    assert (await Post(operator)(f"{place}/replay", reason="x")).status_code == 403
    assert OPERATOR
