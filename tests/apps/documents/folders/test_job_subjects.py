"""Feeds, lists and subscriptions of jobs hide jobs about hidden documents."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import httpx
import psycopg
from fastapi import FastAPI

from duly import Actor, Duly
from duly.apps.documents.folders.access import DocumentPrincipal
from duly.apps.documents.folders.job_subjects import DocumentSubjectRule
from duly.apps.documents.models import Grant
from duly.core.principal import Principal
from duly.features.events.relay import Relay
from tests.apps.documents.http_requests import DOCUMENTS, folder
from tests.apps.documents.stage import add
from tests.db.open_transactions import wait_for_transactions
from tests.features.notifications.delivering import (
    RecordingChannel,
    delivery_results,
    dispatch,
    new_dispatcher,
)
from tests.worker.working import until, working

EXPORTS = f"{DOCUMENTS}/exports"
BOSS = Actor.system("boss")


async def _close(library: Duly, org: uuid.UUID, node_id: uuid.UUID | str, to: str = "user:eve") -> None:
    grants = [Grant(principal=to, level="read")]
    await library.documents.folders.set_grants(DocumentPrincipal(org, BOSS), uuid.UUID(str(node_id)), grants)


async def test_private_jobs_are_not_in_the_feed_of_others(
    http: httpx.AsyncClient, clerk: httpx.AsyncClient, sql: psycopg.Connection
) -> None:
    own = (await clerk.post(EXPORTS, json={"format": "csv"})).json()["job_id"]
    others = (await http.post(EXPORTS, json={"format": "csv"})).json()["job_id"]
    wait_for_transactions(sql)

    async def told(client: httpx.AsyncClient) -> set[str]:
        return {event["job_id"] for event in (await client.get("/v1/feed")).json()["events"]}

    assert await told(clerk) == {own}
    assert await told(http) == {own, others}
    assert len((await http.get("/v1/jobs")).json()["jobs"]) == 2
    assert len((await clerk.get("/v1/jobs")).json()["jobs"]) == 1


async def test_a_feed_ends_when_its_reader_loses_access_to_a_folder(
    http: httpx.AsyncClient, clerk: httpx.AsyncClient, library: Duly, org: uuid.UUID
) -> None:
    node_id = await folder(http, "Personal")
    first = (await clerk.get("/v1/feed")).json()
    headers = {"prefer": "wait=30"}
    waiting = asyncio.create_task(clerk.get("/v1/feed", params={"after": first["after"]}, headers=headers))
    await clerk.get("/v1/feed")
    await _close(library, org, node_id)
    assert (await waiting).json()["code"] == "auth.forbidden"


async def test_the_subjects_of_a_page_of_jobs_are_checked_in_one_call(
    library: Duly, api: FastAPI, clerk: httpx.AsyncClient, clerk_key: str, org: uuid.UUID
) -> None:
    who = DocumentPrincipal(org, BOSS)
    closed = (await library.documents.folders.create(who, "Personal")).node_id
    await _close(library, org, closed)
    seen = await add(library, who, "open")
    hidden = await add(library, who, "closed", node_id=closed)
    for filed in (seen, hidden):
        await library.documents.classification.classify(who, filed.document_id)
    asked: list[int] = []
    rule = DocumentSubjectRule(library)

    async def counted(principal: Principal, subject_ids: Any, action: str) -> Any:
        asked.append(len(subject_ids))
        return await rule(principal, subject_ids, action)

    api.state.service.rules[:] = [counted]
    jobs = (await clerk.get("/v1/jobs")).json()["jobs"]
    assert [one["subject_id"] for one in jobs] == [f"document:{seen.document_id}"]
    assert asked == [2]


async def test_a_subscription_does_not_notify_after_access_was_revoked(
    library: Duly, anna: DocumentPrincipal, sql: psycopg.Connection
) -> None:
    """One is told in the product, one by a job that is on its way already; the third may still see it."""
    channel = RecordingChannel()
    library.notifications.add_channel("kept", channel)
    node_id = (await library.documents.folders.create(anna, "Personal")).node_id
    filed = await add(library, anna, "Gehalt", node_id=node_id)
    handle = await library.documents.classification.classify(anna, filed.document_id)
    for to, actor in (
        ("in_app:anna", anna.actor),
        ("kept:late", anna.actor),
        ("in_app:eve", Actor.user("eve")),
    ):
        await library.subscriptions.subscribe(anna.org_id, to, job_id=handle.job_id, actor=actor)
    async with working(library):
        await handle.wait()
    wait_for_transactions(sql)
    await Relay(library).once()
    sql.execute(
        "update duly.notifications set scheduled_at = scheduled_at + '1 hour' where channel = 'in_app'"
    )
    await dispatch(new_dispatcher(library))  # the one by a job is handed over
    await _close(library, anna.org_id, node_id)
    sql.execute("update duly.notifications set scheduled_at = scheduled_at - interval '1 hour'")
    await dispatch(new_dispatcher(library))
    async with working(library):
        await until(
            sql, "select not exists (select from duly.notifications where delivery_status = 'pending')"
        )
    told = {to: status for to, (status, _, _) in delivery_results(sql).items()}
    assert told == {"anna": "suppressed", "late": "suppressed", "eve": "sent"}
    assert channel.messages == []


async def test_subjects_that_are_not_about_documents_pass_the_rule(
    library: Duly, anna: DocumentPrincipal
) -> None:
    rule, principal = DocumentSubjectRule(library), Principal(anna.org_id, anna.actor, frozenset())
    theirs = {"order:7", "document:of somebody", "private:user:anna"}
    assert await rule(principal, theirs | {"private:user:eve", f"document:{uuid.uuid4()}"}, "read") == theirs
