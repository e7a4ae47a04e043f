"""Dead letters over HTTP: listed, replayed, fixed and discarded; explanations of jobs."""

from __future__ import annotations

import json
import uuid
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from duly import Actor, Duly
from duly.core.outcome import Retried
from duly.core.principal import Principal
from duly.db.database import Database
from duly.features.dead_letters.service import DeadLetters
from duly.features.limits.service import Limits
from duly.http.options import HttpOptions
from tests.features.dead_letters.conftest import bury, send
from tests.features.dead_letters.dead_jobs import BOOM, Bury, end_one
from tests.http.conftest import ANNA, caller, key_of
from tests.http.requests import INVALID_TEXTS, JSON, REASON, check_looks_unknown

__all__ = ["bury", "send"]


async def test_dead_letters_are_listed_and_resolved_once(
    http: httpx.AsyncClient, stranger: httpx.AsyncClient, app: Duly, org: uuid.UUID, bury: Bury
) -> None:
    first, second, third = [await bury(to, subject_id=f"order-{to}") for to in "abc"]
    page = (await http.get("/v1/dead-letters", params={"limit": 2})).json()
    rest = (await http.get("/v1/dead-letters", params={"limit": 2, "after": page["after"]})).json()
    listed = [(one["job_id"], one["subject_id"]) for one in page["letters"] + rest["letters"]]
    assert listed == [(str(third), "order-c"), (str(second), "order-b"), (str(first), "order-a")]
    [group] = (await http.get("/v1/dead-letters/groups")).json()["groups"]
    assert (group["letters"], group["error_code"], rest["after"]) == (3, "boom", None)
    letter = (await http.get(f"/v1/dead-letters/{first}")).json()
    assert (letter["payload"], letter["resolution"]) == ({"to": "a", "size": 1}, None)

    replayed = await http.post(f"/v1/jobs/{first}/replay", json=REASON)
    again = await http.post(f"/v1/jobs/{first}/replay", json=REASON)
    assert (replayed.status_code, replayed.json()) == (202, again.json())
    assert (
        replayed.headers["location"]
        == f"/v1/jobs/{replayed.json()['job_id']}"
        == replayed.json()["status_url"]
    )
    assert (replayed.headers["retry-after"], replayed.json()["subject_id"]) == ("1", "order-a")
    assert [x.headers.get("idempotency-replayed") for x in (replayed, again)] == [None, "true"]
    fixed = await http.post(f"/v1/jobs/{second}/fix", json={**REASON, "payload": {"to": "d"}})
    new = await app.handle(fixed.json()["job_id"], org_id=org).status()
    assert (fixed.status_code, new.replay_of, new.subject_id) == (202, second, "order-b")
    for _ in range(2):
        gone = await http.post(f"/v1/jobs/{third}/discard", json=REASON)
        assert (gone.status_code, gone.json()["resolution"]) == (200, "discarded")
    for path, body in (("discard", REASON), ("fix", {**REASON, "payload": {"to": "d"}})):
        refused = await http.post(f"/v1/jobs/{first}/{path}", json=body)
        assert (refused.status_code, refused.json()["code"]) == (409, "dead_letter.resolved")
    closed = (await http.get("/v1/dead-letters", params={"resolved": True})).json()["letters"]
    assert [one["resolution"] for one in closed] == ["discarded", "fixed", "replayed"]
    trail = (await http.get("/v1/audit", params={"target_id": str(first)})).json()["entries"]
    assert [(e["action"], e["reason"], e["actor_type"]) for e in trail] == [
        ("dead_letter.replayed", REASON["reason"], "api_key")
    ]

    assert (await stranger.get("/v1/dead-letters", params={"resolved": True})).json()["letters"] == []
    assert (await stranger.get("/v1/dead-letters/groups")).json() == {"groups": []}
    await check_looks_unknown(stranger, "GET", "/v1/dead-letters/{}", first)
    for path, body in (
        ("replay", REASON),
        ("fix", {**REASON, "payload": {}}),
        ("discard", REASON),
        ("rerun", REASON),
    ):
        await check_looks_unknown(stranger, "POST", f"/v1/jobs/{{}}/{path}", third, json=body)
    await check_looks_unknown(stranger, "GET", "/v1/jobs/{}/explanation", first)


async def test_many_dead_letters_are_replayed_and_any_ended_job_is_rerun(
    http: httpx.AsyncClient, stranger: httpx.AsyncClient, bury: Bury
) -> None:
    jobs = [await bury(str(n)) for n in range(3)]
    kind = (await http.get(f"/v1/dead-letters/{jobs[0]}")).json()["fingerprint"]
    body = {**REASON, "fingerprint": kind, "per_second": 10, "limit": 2}
    nothing = await stranger.post("/v1/dead-letters/replay", json=body)
    assert (nothing.status_code, nothing.json()) == (202, {"jobs": [], "left": [], "last_run_at": None})
    done = await http.post("/v1/dead-letters/replay", json=body)
    assert (done.status_code, len(done.json()["jobs"]), done.json()["left"]) == (202, 2, [])
    for new in done.json()["jobs"]:
        assert (await http.get(new["status_url"])).json()["replay_of"] in map(str, jobs[:2])

    rerun = await http.post(f"/v1/jobs/{jobs[0]}/rerun", json=REASON)
    assert (rerun.status_code, rerun.headers["location"]) == (202, rerun.json()["status_url"])
    unfinished = await http.post(f"/v1/jobs/{rerun.json()['job_id']}/rerun", json=REASON)
    assert (unfinished.status_code, unfinished.json()["code"]) == (409, "conflict")
    no_letter = await http.post(f"/v1/jobs/{rerun.json()['job_id']}/replay", json=REASON)
    assert (no_letter.status_code, no_letter.json()["code"]) == (404, "job.unknown")

    [group] = (await http.get("/v1/dead-letters/groups")).json()["groups"]
    assert (group["job_id"], group["letters"]) == (str(jobs[2]), 1)
    rest = {**REASON, "fingerprint": kind}
    for client, discarded in ((stranger, 0), (http, 1), (http, 0)):
        gone = await client.post("/v1/dead-letters/discard", json=rest)
        assert (gone.status_code, gone.json()) == (200, {"discarded": discarded})


async def test_tenants_can_neither_cancel_nor_replay_system_jobs(
    http: httpx.AsyncClient, app: Duly, org: uuid.UUID, database: Database
) -> None:
    change = {"target_type": "sheet", "target_id": "7", "after": {"n": 2}}
    job = (await http.post("/v1/audit/changes", json=change)).json()["job_id"]
    before = (await http.get("/v1/audit")).json()

    async def check(path: str, body: dict[str, Any] = REASON) -> None:
        refused = await http.post(f"/v1/jobs/{job}/{path}", json=body)
        assert (refused.status_code, refused.json()["code"]) == (403, "auth.forbidden"), refused.text
        assert refused.json()["errors"][0]["message"] == "duly.enrich_audit is a system job of Duly"

    await check("cancel")
    await end_one(database, Retried(BOOM))
    await check("replay")
    await check("rerun")
    again = {name: {} for name in ("before", "names")} | {"reason": None, "locale": "en"}
    await check("fix", {**REASON, "payload": {**change, **again}})
    many = await http.post("/v1/dead-letters/replay", json={**REASON, "per_second": 10})
    assert (many.json()["jobs"], [one["job_id"] for one in many.json()["left"]]) == ([], [job])
    assert (await http.get("/v1/audit")).json() == before
    handle = await DeadLetters(app).replay(org, job, Actor.operator("olga"), "it may run now")
    assert await app.jobs.cancel(org, handle.job_id, actor=Actor.operator("olga"), reason="no") == "canceled"
    job = str(handle.job_id)
    await check("rerun")  # it has no dead letter


async def test_the_explanation_of_a_job_has_attempts_and_evidence(
    http: httpx.AsyncClient, app: Duly, bury: Bury, send: Any
) -> None:
    dead = (await http.get(f"/v1/jobs/{await bury()}/explanation")).json()
    assert dead["explanation"][0].startswith("Failed for good at ")
    assert (dead["status"], dead["outcome"], dead["freshness"]["state"]) == ("failed", "dead", "terminal")
    [attempt] = dead["attempts"]
    assert (attempt["attempt"], attempt["ended_by"]) == (1, "job.deadlettered")
    assert "worker_id" not in attempt
    await Limits(app).set(job_type="mail.send", max_running=0, actor=ANNA, reason="no money")
    waiting = (await http.get(f"/v1/jobs/{(await send.enqueue('b')).job_id}/explanation")).json()
    assert waiting["explanation"] == [
        "mail.send in all orgs has reached its concurrency limit.",
        "No active worker serves the queue q:default.",
    ]
    assert (waiting["freshness"]["threshold"], waiting["freshness"]["overdue"]) == (86400.0, False)


async def test_invalid_requests_name_their_fields(
    http: httpx.AsyncClient, app: Duly, api: FastAPI, bury: Bury
) -> None:
    job = await bury()
    bodies: list[tuple[str, dict[str, Any]]] = [
        (f"/v1/jobs/{job}/replay", {}),
        (f"/v1/jobs/{job}/replay", {"reason": ""}),
        (f"/v1/jobs/{job}/replay", {"reason": "a\0b"}),
        (f"/v1/jobs/{job}/replay", {"reason": "\ud800"}),
        (f"/v1/jobs/{job}/replay", {**REASON, "force": True}),
        (f"/v1/jobs/{job}/fix", {**REASON, "payload": {"size": "x"}}),
        (f"/v1/jobs/{job}/fix", {**REASON, "payload": {"to": "\0"}}),
        ("/v1/dead-letters/replay", {**REASON, "per_second": 0}),
        ("/v1/dead-letters/discard", {**REASON, "limit": 0}),
        ("/v1/dead-letters/replay", {**REASON, "per_second": 1, "limit": 10**30}),
        ("/v1/dead-letters/replay", {**REASON, "per_second": 1, "job_type": "\0"}),
    ]
    for path, body in bodies:
        response = await http.post(path, content=json.dumps(body), headers=JSON)
        assert response.status_code == 422, (path, body, response.text)
    for name in ("fingerprint", "job_type", "after"):
        for text in INVALID_TEXTS:
            assert (await http.get("/v1/dead-letters", params={name: text})).status_code == 422, (name, text)
    async with caller(api, await key_of(app, (await _org(http)), "jobs:read")) as reader:
        assert (await reader.get("/v1/dead-letters")).status_code == 200
        for path in (f"/v1/jobs/{job}/replay", f"/v1/jobs/{job}/rerun", "/v1/dead-letters/replay"):
            assert (await reader.post(path, json=REASON)).status_code == 403
        assert (await reader.get(f"/v1/dead-letters/{job}")).status_code == 403


async def _org(http: httpx.AsyncClient) -> uuid.UUID:
    return uuid.UUID((await http.get("/v1/org")).json()["org_id"])


async def _only_orders(principal: Principal, subject_id: str, action: str) -> bool:
    return subject_id.startswith("order-")


class TestSubjects:
    """Dead letters of invisible subjects look unknown; bulk actions need access to every subject."""

    @pytest.fixture
    def options(self) -> HttpOptions:
        return HttpOptions(may=_only_orders)

    async def test_invisible_dead_letters_look_unknown(self, http: httpx.AsyncClient, bury: Bury) -> None:
        visible, hidden = await bury("a", subject_id="order-1"), await bury("b", subject_id="salary-9")
        letters = (await http.get("/v1/dead-letters")).json()["letters"]
        assert [one["job_id"] for one in letters] == [str(visible)]
        await check_looks_unknown(http, "GET", "/v1/dead-letters/{}", hidden)
        await check_looks_unknown(http, "GET", "/v1/jobs/{}/explanation", hidden)
        for path, body in (
            ("replay", REASON),
            ("fix", {**REASON, "payload": {}}),
            ("discard", REASON),
            ("rerun", REASON),
        ):
            await check_looks_unknown(http, "POST", f"/v1/jobs/{{}}/{path}", hidden, json=body)
        many = await http.post("/v1/dead-letters/replay", json={**REASON, "per_second": 1})
        for response in (many, await http.get("/v1/dead-letters/groups"), await http.get("/v1/feed")):
            assert (response.status_code, response.json()["code"]) == (403, "auth.forbidden")
        assert (await http.post(f"/v1/jobs/{visible}/replay", json=REASON)).status_code == 202

    async def test_a_dead_letter_that_outlived_its_job_needs_access_to_every_subject(
        self, http: httpx.AsyncClient, bury: Bury, sql: Any
    ) -> None:
        job = await bury("a", subject_id="order-1")
        sql.execute("alter table duly.job_records disable trigger user")
        sql.execute("delete from duly.job_records where job_id = %s", [job])
        assert (await http.get("/v1/dead-letters")).json()["letters"] == []
        assert (await http.get(f"/v1/dead-letters/{job}")).status_code == 404
