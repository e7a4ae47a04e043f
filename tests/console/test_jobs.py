"""The list of jobs: the filter is in the URL; bulk actions show a count and need a reason."""

from __future__ import annotations

import re
import uuid
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from duly import Duly
from duly.core.job import SYSTEM_ORG
from tests.console.conftest import Person, Post
from tests.features.overview.sample_jobs import all_of, fill
from tests.worker.blocking_jobs import create_orgs

JOB = re.compile(r'id="job-([0-9a-f-]{36})"')


@pytest.fixture
async def rows(app: Duly, org: uuid.UUID, sql: psycopg.Connection) -> list[dict[str, Any]]:
    """The jobs of the org; another org has the same."""
    [theirs] = await create_orgs(app, 1)
    fill(sql, org, theirs)
    return list(all_of(sql, org))


async def shown(person: Person, **query: object) -> list[str]:
    answer = await person.get("/console/jobs", params=query)
    assert answer.status_code == 200, answer.text
    return JOB.findall(answer.text)


def _is(row: dict[str, Any], subject: str, region: str) -> bool:
    return row["subject_id"] == subject and row["payload"]["region"] == region


async def test_each_query_parameter_filters_the_list(viewer: Person, rows: list[dict[str, Any]]) -> None:
    for query, fits in (
        ({}, lambda row: True),
        ({"status": "failed"}, lambda row: row["status"] == "failed"),
        ({"type": "type.1"}, lambda row: row["job_type"] == "type.1"),
        ({"kind": "f1"}, lambda row: row["fingerprint"] == "f1"),
        ({"freshness": "fresh_active", "queue": "q:exports"}, None),
        ({"payload.region": "DE"}, lambda row: row["payload"]["region"] == "DE"),
        ({"q": "payload.items.0.sku:X1"}, lambda row: row["payload"]["items"][0]["sku"] == "X1"),
        ({"q": "doc-1", "payload.region": "DE"}, lambda row: _is(row, "doc-1", "DE")),
        ({"q": "type.2"}, lambda row: row["job_type"] == "type.2"),
        ({"q": str(rows[0]["job_id"])}, lambda row: row["job_id"] == rows[0]["job_id"]),
        ({"q": str(uuid.uuid4())}, lambda row: False),
    ):  # fmt: skip
        found = await shown(viewer, **query)
        if fits is not None:
            assert set(found) == {str(row["job_id"]) for row in rows if fits(row)}, query


async def test_the_search_box_shows_the_filter_and_its_errors(viewer: Person, rows: list[Any]) -> None:
    page = await viewer.get("/console/jobs", params={"status": "failed", "payload.region": "DE"})
    assert 'value="status:failed payload.region:DE"' in page.text
    for wrong, said in (
        ("colour:red", "unknown filter 'colour'"),
        ("payload.password:x", "are redacted"),
        ("payload.mail:anna@example.org", "cannot be filtered by"),
        ("status:lost", "unknown status 'lost'"),
        ("since:noon", "is not a time"),
    ):
        answer = await viewer.get("/console/jobs", params={"q": wrong})
        assert (answer.status_code, JOB.findall(answer.text)) == (422, [])
        assert said in unescape(answer.text)


async def test_pagination_keeps_the_filter(viewer: Person, rows: list[Any], sql: psycopg.Connection) -> None:
    sql.execute("update duly.job_records set job_type = 'type.1'")
    fill(sql, sql.execute("select org_id from duly.organizations where name = 'Acme' limit 1").fetchone()[0])  # type: ignore[index]
    first = await viewer.get("/console/jobs", params={"q": "type.*"})
    [older] = re.findall(r'rel="next" href="([^"]+)"', first.text)
    query = parse_qs(urlsplit(unescape(older)).query)
    assert query["type"] == ["type.*"]
    second = await viewer.get(unescape(older))
    assert not set(JOB.findall(first.text)) & set(JOB.findall(second.text))


async def test_all_matching_jobs_are_counted_and_changed_by_a_job(
    operator: Person, rows: list[Any], sql: psycopg.Connection
) -> None:
    asked = {"verb": "cancel", "scope": "all", "queue": "q:exports"}
    page = await operator.get("/console/jobs/bulk", params=asked)
    active = sum(row["queue"] == "q:exports" and not row["finished_at"] for row in rows)
    assert f"Cancel {active} jobs" in page.text
    assert "unchanged: already finished" in page.text
    post = Post(operator)
    path = "/console/jobs/bulk?verb=cancel&scope=all&queue=q:exports"
    refused = await post(path, reason=" ")
    assert (refused.status_code, "fill in reason" in refused.text) == (422, True)
    done = await post(path, reason="not needed")
    assert done.status_code == 303
    job = done.headers["location"].rpartition("/")[2]
    said = "select payload from duly.job_records where job_id = %s"
    [payload] = sql.execute(said, [job]).fetchone() or [None]
    assert (payload["verb"], payload["wanted"]) == ("cancel", {"queue": "q:exports"})


async def test_only_the_selected_jobs_of_the_own_org_are_changed(
    operator: Person, org: uuid.UUID, rows: list[Any], sql: psycopg.Connection
) -> None:
    mine = [str(row["job_id"]) for row in rows if row["status"] == "failed"][:2]
    other = sql.execute("select job_id from duly.job_records where org_id <> %s limit 1", [org]).fetchone()
    assert other
    asked = {"verb": "replay", "scope": "these", "job": [*mine, str(other[0])]}
    assert "Replay 2 jobs" in (await operator.get("/console/jobs/bulk", params=asked)).text
    nothing = await operator.get("/console/jobs/bulk", params={"verb": "replay", "scope": "these"})
    assert (nothing.status_code, "No jobs selected" in nothing.text) == (422, True)
    assert (await operator.get("/console/jobs/bulk", params={"verb": "sell"})).status_code == 404


async def test_a_viewer_is_offered_no_bulk_action_and_may_not_send_one(
    viewer: Person, rows: list[Any]
) -> None:
    page = await viewer.get("/console/jobs")
    assert 'name="job"' not in page.text
    assert "jobs/bulk?" not in page.text
    path = "/console/jobs/bulk?verb=cancel&scope=all"
    assert (await viewer.get(path)).status_code == 403
    assert (await Post(viewer)(path, reason="x")).status_code == 403


async def test_a_platform_operator_lists_jobs_of_all_orgs_or_one(
    platform: Person, org: uuid.UUID, rows: list[Any], sql: psycopg.Connection
) -> None:
    both = await platform.get("/console/jobs", params={"status": "failed"})
    assert len(JOB.findall(both.text)) == 2 * sum(row["status"] == "failed" for row in rows)
    assert f"/console/jobs?org={org}" in both.text
    one = str(rows[0]["job_id"])
    assert await shown(platform, q=one) == [one]
    assert len(await shown(platform, status="failed", org=org)) == sum(r["status"] == "failed" for r in rows)
    done = await Post(platform)("/console/jobs/bulk?verb=replay&scope=all&status=canceled", reason="again")
    job = done.headers["location"].rpartition("/")[2]
    said = "select org_id, actor_type from duly.job_records where job_id = %s"
    assert sql.execute(said, [job]).fetchone() == (SYSTEM_ORG, "operator")
