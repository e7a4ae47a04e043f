"""Lists of jobs by whatever can be asked of them: each filter, with others, in pages, within bounds."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Any

import psycopg
import pytest

from duly import Duly, errors
from duly.control import jobs as control
from duly.control.jobs import Jobs
from duly.model.freshness import Freshness
from duly.model.job import JobSnapshot
from duly.model.states import Outcome, Status
from duly.store import listing
from tests.control.filled import all_of, fill
from tests.control.test_jobs import ids, walk
from tests.worker.site import make_orgs

HOUR = timedelta(hours=1)
NOW = datetime.now(UTC)
Row = dict[str, Any]
_HORIZON = {"queued": 24 * HOUR, "running": 6 * HOUR, "partial": 6 * HOUR}


def freshness(row: Row) -> str:
    """By the age alone: all queues have what waits, and the worker of what is held is alive."""
    if row["finished_at"]:
        return "terminal"
    if row["uncovered"]:
        return "unknown"
    age = datetime.now(UTC) - row["created_at"]
    return "likely_stale" if age > _HORIZON[row["status"]] else "fresh"


def _is(name: str, value: Any) -> Callable[[Row], bool]:
    return lambda row: row[name] == value


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
    ("metadata", {"n": "1", "customer": "c-3"}, lambda row: row["metadata"] == {"customer": "c-3", "n": 1}),
]


def in_order(found: list[Row], wanted: dict[str, Any]) -> list[uuid.UUID]:
    """By their end if the list is of one ended status, else by their id."""
    ended = {row["status"] for row in found} <= {"completed", "failed", "canceled"}
    by_end = "subject_id" not in wanted and ended and wanted.keys() & {"status", "outcome"}
    place = (lambda row: (row["finished_at"], row["job_id"])) if by_end else (lambda row: row["job_id"])
    return [row["job_id"] for row in sorted(found, key=place, reverse=True)]


@pytest.fixture
def jobs(app: Duly) -> Jobs:
    return Jobs(app)


async def test_each_filter_and_each_two_of_them_find_what_they_say_in_order_and_nothing_foreign(
    app: Duly, jobs: Jobs, sql: psycopg.Connection
) -> None:
    mine, theirs = await make_orgs(app, 2)
    fill(sql, mine, theirs)
    everything = list(all_of(sql, mine))
    assert len(everything) == 48
    nonempty = 0
    for some in [*((one,) for one in FILTERS), *combinations(FILTERS, 2)]:
        wanted = {name: value for name, value, _ in some}
        if len(wanted) < len(some) or (wanted.get("freshness") and _says_ended(wanted)):
            continue
        expected = [row for row in everything if all(fits(row) for *_, fits in some)]
        size = len(expected) // 2 or 1
        pages = await paged(jobs, mine, size, **wanted)
        assert [job.job_id for page in pages for job in page] == in_order(expected, wanted), wanted
        # So few are all looked at for the first page: only the last one may be short.
        assert {len(page) for page in pages[:-1]} <= {size}, wanted
        nonempty += bool(expected)
    assert nonempty > 100


async def paged(jobs: Jobs, org: uuid.UUID, size: int, **wanted: Any) -> list[tuple[JobSnapshot, ...]]:
    pages = [await jobs.list(org, limit=size, **wanted)]
    while pages[-1].after is not None:
        pages.append(await jobs.list(org, limit=size, after=pages[-1].after, **wanted))
    return [page.jobs for page in pages]


def _says_ended(wanted: dict[str, Any]) -> bool:
    active = ("queued", "running", "partial", None)
    return wanted.get("status") not in active or wanted.get("outcome") not in ("pending", None)


async def test_all_filters_together(app: Duly, jobs: Jobs, sql: psycopg.Connection) -> None:
    [org] = await make_orgs(app, 1)
    fill(sql, org)
    [one] = [row for row in all_of(sql, org) if row["subject_id"] and row["status"] == "completed"][:1]
    wanted = {
        name: one[name] for name in ("status", "outcome", "job_type", "queue", "subject_id", "metadata")
    }
    wanted["created_after"] = one["created_at"]
    wanted["created_before"] = one["created_at"] + timedelta(microseconds=1)
    assert ids(await walk(jobs, org, **wanted)) == [one["job_id"]]
    for name, other in {"status": "running", "queue": "q:other", "created_before": one["created_at"]}.items():
        assert await walk(jobs, org, **{**wanted, name: other}) == []
    with pytest.raises(errors.UnknownOrg):
        await jobs.list(uuid.uuid4(), status="completed", outcome="dead")


async def test_a_job_whose_submitter_had_another_clock_is_found_by_the_time_of_the_database(
    app: Duly, jobs: Jobs, sql: psycopg.Connection
) -> None:
    [org] = await make_orgs(app, 1)
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
    for wanted in ({"created_before": datetime.min}, {"created_after": datetime.max}):
        [(name, at)] = wanted.items()
        assert await walk(jobs, org, **{name: at.replace(tzinfo=UTC)}) == []


async def test_metadata_is_compared_as_text_and_what_is_missing_is_null(
    app: Duly, jobs: Jobs, sql: psycopg.Connection
) -> None:
    [org] = await make_orgs(app, 1)
    fill(sql, org)
    kept = '{"n": 1.50, "deep": {"a": 1}, "yes": true, "empty": ""}'
    sql.execute("update duly.job_records set metadata = %s where job_type = 'type.1'", [kept])
    for name, values in {"n": ["1.50"], "yes": [True, "true"], "deep": ['{"a": 1}'], "empty": [""]}.items():
        for value in values:
            found = await walk(jobs, org, 50, metadata={name: value})
            assert {job.job_type for job in found} == {"type.1"}
    assert await walk(jobs, org, 50, metadata={"yes": False}) == []
    assert len(await walk(jobs, org, 50, metadata={"nothing": None})) == 48
    assert len(await walk(jobs, org, 50, metadata={})) == 48


async def test_a_job_that_moved_on_since_it_was_found_is_not_shown(
    app: Duly, jobs: Jobs, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    [org] = await make_orgs(app, 1)
    fill(sql, org)
    real = listing.read

    async def read(*asked: Any) -> Any:
        sql.execute("update duly.job_states set status = 'partial' where status = 'running'")
        return await real(*asked)

    assert len((await jobs.list(org, status="running")).jobs) == 6
    monkeypatch.setattr(control.listing, "read", read)
    assert (await jobs.list(org, status="running")).jobs == ()


async def test_a_page_is_refused_by_every_other_list(app: Duly, jobs: Jobs, sql: psycopg.Connection) -> None:
    mine, theirs = await make_orgs(app, 2)
    fill(sql, mine, theirs)
    page = await jobs.list(mine, status="failed", limit=1)
    others = [{name: value} for name, value, _ in FILTERS if (name, value) != ("status", "failed")]
    for wanted in [{}, *others, {"status": "failed", "outcome": "dead"}]:
        with pytest.raises(errors.ContractError, match="of another list") as caught:
            await jobs.list(mine, **wanted, after=page.after)
        assert caught.value.field == "after"
    with pytest.raises(errors.ContractError, match="of another list"):
        await jobs.list(theirs, status="failed", after=page.after)
    assert len((await jobs.list(mine, status="failed", limit=5, after=page.after)).jobs) == 5


async def test_so_many_are_judged_and_no_more_and_the_rest_is_found_by_paging_on(
    app: Duly, jobs: Jobs, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    [org] = await make_orgs(app, 1)
    fill(sql, org)
    monkeypatch.setattr(control, "_JUDGED", 2)
    monkeypatch.setattr(control, "_LOOKS", 2)
    page = await jobs.list(org, freshness="likely_stale")
    assert (page.jobs, page.after is None) == ((), False)
    stale = [row["job_id"] for row in all_of(sql, org) if freshness(row) == "likely_stale"]
    assert ids(await walk(jobs, org, freshness="likely_stale")) == sorted(stale, reverse=True)
