"""Job lists: every filter alone and with others, in pages, within bounds."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Any

import psycopg
import pytest

from duly import Duly, errors
from duly.core.freshness import Freshness
from duly.core.job import JobSnapshot
from duly.core.states import Outcome, Status
from duly.features.jobs import listing
from duly.features.jobs.filter import JobCursor, JobFilter
from duly.features.jobs.service import Jobs
from duly.jobs import store as job_store
from tests.features.jobs.test_jobs import ids, walk
from tests.features.overview.sample_jobs import all_of, fill
from tests.worker.blocking_jobs import create_orgs

HOUR = timedelta(hours=1)
NOW = datetime.now(UTC)
Row = dict[str, Any]
_HORIZON = {"queued": 24 * HOUR, "running": 6 * HOUR, "partial": 6 * HOUR}


def freshness(row: Row) -> str:
    """Return the freshness by age alone: all queued jobs are in queues, and the worker is alive."""
    if row["finished_at"]:
        return "terminal"
    if row["uncovered"]:
        return "unknown"
    age = datetime.now(UTC) - row["created_at"]
    return "likely_stale" if age > _HORIZON[row["status"]] else "fresh"


def _is(name: str, value: Any) -> Callable[[Row], bool]:
    return lambda row: row[name] == value


def _sku(row: Row) -> str:
    return str(row["payload"]["items"][0]["sku"])


def _express(row: Row) -> bool:
    return bool(row["payload"]["express"])


FILTERS: list[tuple[str, Any, Callable[[Row], bool]]] = [
    *(("status", status, _is("status", status)) for status in Status),
    *(("outcome", outcome, _is("outcome", outcome)) for outcome in Outcome),
    ("job_type", "type.1", _is("job_type", "type.1")),
    ("queue", "q:exports", _is("queue", "q:exports")),
    ("subject_id", "doc-1", _is("subject_id", "doc-1")),
    *(("freshness", f.value, lambda row, f=f: freshness(row) == f) for f in Freshness if f != "terminal"),
    ("created_after", NOW - 30 * HOUR, lambda row: row["created_at"] >= NOW - 30 * HOUR),
    ("created_before", NOW - 5 * HOUR, lambda row: row["created_at"] < NOW - 5 * HOUR),
    ("metadata", {"customer": "c-1"}, lambda row: (row["metadata"] or {}).get("customer") == "c-1"),
    ("job_type", "type.*", lambda row: True),
    ("job_type", "typo*", lambda row: False),
    ("error_code", "e", _is("error_code", "e")),
    *(("fingerprint", kind, _is("fingerprint", kind)) for kind in ("f0", "f1")),
    ("payload", {"region": "DE"}, lambda row: row["payload"]["region"] == "DE"),
    ("payload", {"items.0.sku": "X1", "express": True}, lambda row: _sku(row) == "X1" and _express(row)),
    ("payload", {"region": None, "net": "1.50"}, lambda row: row["payload"]["region"] is None),
    ("metadata", {"n": "1", "customer": "c-3"}, lambda row: row["metadata"] == {"customer": "c-3", "n": 1}),
]


def in_order(found: list[Row], filters: dict[str, Any]) -> list[uuid.UUID]:
    """Return ids by end if the list has one final status, else by id."""
    ended = {row["status"] for row in found} <= {"completed", "failed", "canceled"}
    by_end = "subject_id" not in filters and ended and filters.keys() & {"status", "outcome", "fingerprint"}
    sort_key = (lambda row: (row["finished_at"], row["job_id"])) if by_end else (lambda row: row["job_id"])
    return [row["job_id"] for row in sorted(found, key=sort_key, reverse=True)]


async def test_each_filter_and_each_pair_of_filters_lists_the_matching_jobs_of_the_org_in_order(
    app: Duly, jobs: Jobs, sql: psycopg.Connection
) -> None:
    mine, theirs = await create_orgs(app, 2)
    fill(sql, mine, theirs)
    everything = list(all_of(sql, mine))
    assert len(everything) == 48
    nonempty = 0
    for combination in [*((one,) for one in FILTERS), *combinations(FILTERS, 2)]:
        filters = {name: value for name, value, _ in combination}
        if len(filters) < len(combination) or (filters.get("freshness") and _says_ended(filters)):
            continue
        expected = [row for row in everything if all(fits(row) for *_, fits in combination)]
        size = len(expected) // 2 or 1
        pages = await paged(jobs, mine, size, **filters)
        assert [job.job_id for page in pages for job in page] == in_order(expected, filters), filters
        # So few are all looked at for the first page: only the last one may be short.
        assert {len(page) for page in pages[:-1]} <= {size}, filters
        nonempty += bool(expected)
    assert nonempty > 100


async def test_the_list_of_all_orgs_has_the_matching_jobs_of_each_org(
    app: Duly, jobs: Jobs, sql: psycopg.Connection
) -> None:
    orgs = await create_orgs(app, 3)
    fill(sql, *orgs)
    everything = [row for org in orgs for row in all_of(sql, org)]
    nonempty = 0
    for combination in [*((one,) for one in FILTERS), *combinations(FILTERS, 2)][::3]:
        filters = {name: value for name, value, _ in combination}
        if len(filters) < len(combination) or (filters.get("freshness") and _says_ended(filters)):
            continue
        expected = [row["job_id"] for row in everything if all(fits(row) for *_, fits in combination)]
        size, found, after = len(expected) // 2 or 1, [], None
        while after is not None or not found:
            page = await jobs.list_all_orgs(limit=size, after=after, **filters)
            found, after = [*found, [job.job_id for job in page.jobs]], page.after
        assert sorted(one for page in found for one in page) == sorted(expected), filters
        assert {len(page) for page in found[:-1]} <= {size}, filters
        nonempty += bool(expected)
    assert nonempty > 50
    failed = (await jobs.list_all_orgs(status="failed")).jobs
    assert [job.finished_at for job in failed] == sorted((job.finished_at for job in failed), reverse=True)
    assert {job.org_id for job in failed} == set(orgs)


async def test_jobs_are_counted_by_status(app: Duly, jobs: Jobs, sql: psycopg.Connection) -> None:
    mine, theirs = await create_orgs(app, 2)
    fill(sql, mine, theirs)
    counts = Counter(row["status"] for row in all_of(sql, mine))
    found = await jobs.count_by_status(mine)
    assert {status: one.count for status, one in found.items()} == counts
    both = await jobs.count_by_status(None)
    assert {status: one.count for status, one in both.items()} == {
        status: 2 * n for status, n in counts.items() if status != "completed"
    }


async def test_the_org_of_a_job_is_found_by_the_job_id(
    app: Duly, jobs: Jobs, sql: psycopg.Connection
) -> None:
    mine, theirs = await create_orgs(app, 2)
    fill(sql, mine, theirs)
    one = next(all_of(sql, theirs))["job_id"]
    assert await jobs.find(one) == theirs
    assert await jobs.find(uuid.uuid4()) is None


async def test_a_list_by_ids_contains_only_jobs_of_the_org(
    app: Duly, jobs: Jobs, sql: psycopg.Connection
) -> None:
    mine, theirs = await create_orgs(app, 2)
    fill(sql, mine, theirs)
    rows, others = list(all_of(sql, mine))[:6], list(all_of(sql, theirs))[:2]
    named = [row["job_id"] for row in [*rows, *others]]
    assert sorted(ids(await walk(jobs, mine, job_ids=named))) == sorted(row["job_id"] for row in rows)
    failed = sorted((row["job_id"] for row in rows if row["status"] == "failed"), reverse=True)
    assert ids(await walk(jobs, mine, job_ids=named, status="failed")) == failed
    keys = [f"{mine}/{rows[0]['job_id']}", f"{theirs}/{others[0]['job_id']}", f"{mine}/{others[1]['job_id']}"]
    found = (await jobs.list_all_orgs(job_ids=keys)).jobs
    assert {job.job_id for job in found} == {rows[0]["job_id"], others[0]["job_id"]}
    for org, wrong in ((mine, keys[:1]), (mine, ["x"]), (mine, [uuid.uuid4()] * 501)):
        with pytest.raises(errors.ContractError) as caught:
            await jobs.list(org, job_ids=wrong)
        assert caught.value.field == "job_ids"
    with pytest.raises(errors.ContractError, match="invalid job id"):
        await jobs.list_all_orgs(job_ids=[rows[0]["job_id"]])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("password", "x"), ("user.api_key", "x"), ("pin", 1234), ("token.kind", "a"), ("headers.cookie", "a"),
        ("email", "anna@example.org"), ("card", 4111111111111111), ("a..b", "x"), ("", "x"), ("a", ["x"]),
        ("a", "x" * 501), ("a\0", "x"),
    ],
)  # fmt: skip
async def test_redacted_payload_values_cannot_be_filtered_by(
    jobs: Jobs, org: uuid.UUID, path: str, value: Any
) -> None:
    for arguments in (jobs.list(org, payload={path: value}), jobs.list_all_orgs(payload={path: value})):
        with pytest.raises(errors.ContractError) as caught:
            await arguments
        assert caught.value.field.startswith("payload")
        assert caught.value.fix


async def paged(jobs: Jobs, org: uuid.UUID, size: int, **filters: Any) -> list[tuple[JobSnapshot, ...]]:
    pages = [await jobs.list(org, limit=size, **filters)]
    while pages[-1].after is not None:
        pages.append(await jobs.list(org, limit=size, after=pages[-1].after, **filters))
    return [page.jobs for page in pages]


def _says_ended(filters: dict[str, Any]) -> bool:
    active = ("queued", "running", "partial", None)
    return filters.get("status") not in active or filters.get("outcome") not in ("pending", None)


async def test_all_filters_together(app: Duly, jobs: Jobs, sql: psycopg.Connection) -> None:
    [org] = await create_orgs(app, 1)
    fill(sql, org)
    [one] = [row for row in all_of(sql, org) if row["subject_id"] and row["status"] == "completed"][:1]
    filters = {
        name: one[name] for name in ("status", "outcome", "job_type", "queue", "subject_id", "metadata")
    }
    filters["created_after"] = one["created_at"]
    filters["created_before"] = one["created_at"] + timedelta(microseconds=1)
    assert ids(await walk(jobs, org, **filters)) == [one["job_id"]]
    for name, other in {"status": "running", "queue": "q:other", "created_before": one["created_at"]}.items():
        assert await walk(jobs, org, **{**filters, name: other}) == []
    with pytest.raises(errors.UnknownOrg):
        await jobs.list(uuid.uuid4(), status="completed", outcome="dead")


async def test_a_job_whose_submitter_had_another_clock_is_found_by_the_time_of_the_database(
    app: Duly, jobs: Jobs, sql: psycopg.Connection
) -> None:
    [org] = await create_orgs(app, 1)
    fill(sql, org)
    off = timedelta(seconds=50)
    moved = "update duly.job_records set created_at = created_at + %s where org_id = %s"
    for shift in (off, -2 * off):
        sql.execute(moved, [shift, org])
        row = sorted(all_of(sql, org), key=lambda row: row["created_at"])[24]
        at, moment = row["created_at"], timedelta(microseconds=1)
        assert ids(await walk(jobs, org, created_after=at, created_before=at + moment)) == [row["job_id"]]
        assert row["job_id"] not in ids(await walk(jobs, org, created_after=at + moment))
        assert row["job_id"] not in ids(await walk(jobs, org, created_before=at))
    for filters in ({"created_before": datetime.min}, {"created_after": datetime.max}):
        [(name, at)] = filters.items()
        assert await walk(jobs, org, **{name: at.replace(tzinfo=UTC)}) == []


async def test_metadata_is_compared_as_text_and_missing_keys_are_null(
    app: Duly, jobs: Jobs, sql: psycopg.Connection
) -> None:
    [org] = await create_orgs(app, 1)
    fill(sql, org)
    metadata = '{"n": 1.50, "deep": {"a": 1}, "yes": true, "empty": ""}'
    sql.execute("update duly.job_records set metadata = %s where job_type = 'type.1'", [metadata])
    for name, values in {"n": ["1.50"], "yes": [True, "true"], "deep": ['{"a": 1}'], "empty": [""]}.items():
        for value in values:
            found = await walk(jobs, org, 50, metadata={name: value})
            assert {job.job_type for job in found} == {"type.1"}
    assert await walk(jobs, org, 50, metadata={"yes": False}) == []
    assert len(await walk(jobs, org, 50, metadata={"nothing": None})) == 48
    assert len(await walk(jobs, org, 50, metadata={})) == 48


async def test_a_job_whose_status_changed_since_the_scan_is_left_out(
    app: Duly, jobs: Jobs, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    [org] = await create_orgs(app, 1)
    fill(sql, org)
    real = job_store.read_jobs

    async def read(*arguments: Any) -> Any:
        sql.execute("update duly.job_states set status = 'partial' where status = 'running'")
        return await real(*arguments)

    assert len((await jobs.list(org, status="running")).jobs) == 6
    monkeypatch.setattr(job_store, "read_jobs", read)
    assert (await jobs.list(org, status="running")).jobs == ()


async def test_a_cursor_is_refused_by_every_other_list(
    app: Duly, jobs: Jobs, sql: psycopg.Connection
) -> None:
    mine, theirs = await create_orgs(app, 2)
    fill(sql, mine, theirs)
    page = await jobs.list(mine, status="failed", limit=1)
    others = [{name: value} for name, value, _ in FILTERS if (name, value) != ("status", "failed")]
    for filters in [{}, *others, {"status": "failed", "outcome": "dead"}]:
        with pytest.raises(errors.ContractError, match="belongs to another list") as caught:
            await jobs.list(mine, **filters, after=page.after)
        assert caught.value.field == "after"
    with pytest.raises(errors.ContractError, match="belongs to another list"):
        await jobs.list(theirs, status="failed", after=page.after)
    assert len((await jobs.list(mine, status="failed", limit=5, after=page.after)).jobs) == 5


def test_a_checkpoint_of_an_earlier_release_continues_although_its_digest_differs(org: uuid.UUID) -> None:
    cursor = JobCursor(NOW, uuid.uuid4())
    written = listing.encode_end(JobFilter(org), cursor)
    same_list = JobFilter(org, queue="q:default")
    assert listing.decode_start(same_list, written, check_list=False) == cursor
    with pytest.raises(errors.ContractError, match="belongs to another list"):
        listing.decode_start(same_list, written)


async def test_a_page_assesses_a_bounded_number_of_jobs_and_later_pages_the_rest(
    app: Duly, jobs: Jobs, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    [org] = await create_orgs(app, 1)
    fill(sql, org)
    monkeypatch.setattr(listing, "_ASSESSED_PER_SCAN", 2)
    monkeypatch.setattr(listing, "_MAX_SCANS", 2)
    page = await jobs.list(org, freshness="likely_stale")
    assert (page.jobs, page.after is None) == ((), False)
    stale = [row["job_id"] for row in all_of(sql, org) if freshness(row) == "likely_stale"]
    assert ids(await walk(jobs, org, freshness="likely_stale")) == sorted(stale, reverse=True)
