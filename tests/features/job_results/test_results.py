"""Results by permalink: final, partial, missing, and of other orgs."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from duly import Actor, Context, Duly, Fail, Handle, context, errors
from duly.core.policy import Retention
from duly.features.job_results import service as control
from duly.features.job_results.service import Results
from tests.worker.blocking_jobs import SOON, create_orgs, running_workers

LARGE = {"text": "x" * 40_000}
KEEP = Retention(partial_results=timedelta(days=3), final_results=timedelta(days=30))


@pytest.fixture
def results(app: Duly) -> Results:
    return Results(app, KEEP)


def declare(app: Duly) -> Any:
    @app.job("site.pages")
    async def pages(ctx: Context, values: list[Any], fails: bool = False) -> Any:
        for number, value in enumerate(values[:-1]):
            await ctx.partial(value, key=f"p{number}")
        if fails:
            raise Fail("no")
        return values[-1]

    return pages


async def ended(app: Duly, org: uuid.UUID, *values: Any, fails: bool = False) -> Handle[Any]:
    job = app.registry.get("site.pages") if "site.pages" in app.registry else declare(app)
    with context(org_id=org, actor=Actor.user("u1")):
        handle = await job.enqueue(list(values), fails)
    async with running_workers(app, poll=SOON):
        await handle.wait(60)
    return handle


async def link(handle: Handle[Any]) -> uuid.UUID:
    return (await handle.status()).result_id


async def test_the_final_snapshot_is_the_latest_and_each_is_found_by_number(
    app: Duly, results: Results, org: uuid.UUID
) -> None:
    handle = await ended(app, org, {"page": 1}, LARGE, {"pages": 2})
    found = await results.get(str(org), str(await link(handle)))
    assert found.job == await handle.status()
    assert found.result_id == found.job.result_id
    last = found.snapshot
    assert last is not None
    assert (last.kind, last.seq, last.value, last.chunk_key) == ("final", 3, {"pages": 2}, None)
    assert (found.latest_seq, found.expires_at) == (3, last.created_at + timedelta(days=30))
    for seq, value in {1: {"page": 1}, 2: LARGE, 3: {"pages": 2}}.items():
        one = (await results.get(org, found.result_id, seq=seq)).snapshot
        assert one is not None
        assert (one.seq, one.value, one.large) == (seq, value, False)
    part = (await results.get(org, found.result_id, seq=1)).snapshot
    assert part is not None
    assert (part.kind, part.chunk_key) == ("partial", "p0")
    assert part.expires_at == part.created_at + timedelta(days=3)
    with pytest.raises(errors.UnknownResult):
        await results.get(org, found.result_id, seq=4)


async def test_the_latest_partial_result_outlives_a_failed_job(
    app: Duly, results: Results, org: uuid.UUID
) -> None:
    handle = await ended(app, org, {"page": 1}, {"page": 2}, None, fails=True)
    found = await results.get(org, await link(handle))
    assert found.snapshot is not None
    assert (found.job.status, found.snapshot.kind, found.snapshot.value) == ("failed", "partial", {"page": 2})
    assert found.latest_seq == 2


async def test_a_job_without_a_snapshot_has_an_empty_result(
    app: Duly, results: Results, org: uuid.UUID
) -> None:
    pages = declare(app)
    with context(org_id=org, actor=Actor.user("u1")):
        waiting = await pages.enqueue([1])
        await waiting.cancel("wrong button")
    found = await results.get(org, await link(waiting))
    assert (found.snapshot, found.latest_seq, found.expires_at) == (None, 0, None)
    assert (found.job.status, await results.list(org, found.result_id)) == ("canceled", [])
    with pytest.raises(errors.UnknownResult):
        await results.get(org, found.result_id, seq=1)
    empty = await results.get(org, await link(await ended(app, org, None)))
    assert empty.snapshot is not None
    assert (empty.snapshot.kind, empty.snapshot.value, empty.latest_seq) == ("final", None, 1)


async def test_unknown_foreign_and_expired_results_raise_the_same_error(
    app: Duly, results: Results, sql: psycopg.Connection
) -> None:
    mine, theirs = await create_orgs(app, 2)
    handle = await ended(app, theirs, {"page": 1}, {"pages": 1})
    foreign, unknown = await link(handle), uuid.uuid4()
    messages = set()
    for ask in (results.get, results.list, results.job):
        for result_id in (foreign, unknown, handle.job_id):
            with pytest.raises(errors.UnknownResult) as caught:
                await ask(mine, result_id)
            messages.add(str(caught.value).replace(str(result_id), ""))
    assert (await results.job(theirs, foreign)).job_id == handle.job_id
    sql.execute("delete from duly.result_snapshots where result_kind = 'partial'")
    assert [one.kind for one in await results.list(theirs, foreign)] == ["final"]
    with pytest.raises(errors.UnknownResult):
        await results.get(theirs, foreign, seq=1)
    sql.execute("delete from duly.result_snapshots")
    with pytest.raises(errors.UnknownResult) as gone:
        await results.get(theirs, foreign)
    messages.add(str(gone.value).replace(str(foreign), ""))
    assert len(messages) == 1


async def test_snapshots_are_listed_in_order_and_large_values_are_left_out(
    app: Duly, results: Results, org: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    which = await link(await ended(app, org, *({"n": n} for n in range(4)), LARGE, {"n": 5}))
    first = await results.list(org, which, limit=3)
    rest = await results.list(org, which, after=first[-1].seq, limit=3)
    listed = [(one.seq, one.kind, one.value, one.large) for one in [*first, *rest]]
    assert listed == [
        *((n + 1, "partial", {"n": n}, False) for n in range(4)),
        (5, "partial", None, True),
        (6, "final", {"n": 5}, False),
    ]
    assert await results.list(org, which, after=6) == []
    monkeypatch.setattr(control, "_MAX_PAGE_BYTES", 2 * len('{"n": 0}'))
    assert [one.value for one in await results.list(org, which, after=1)] == [
        {"n": 1},
        {"n": 2},
        None,
        None,
        None,
    ]
    assert [one.large for one in await results.list(org, which, after=1)] == [False, False, True, True, True]


async def test_invalid_numbers_are_refused(results: Results, org: uuid.UUID) -> None:
    which = uuid.uuid4()
    for field, value in (
        ("seq", 0),
        ("seq", 2**31),
        ("seq", True),
        ("after", -1),
        ("limit", 0),
        ("limit", 501),
    ):
        ask = results.get if field == "seq" else results.list
        with pytest.raises(errors.ContractError) as caught:
            await ask(org, which, **{field: value})
        assert (caught.value.field, bool(caught.value.fix)) == (field, True)
    with pytest.raises(errors.ContractError) as caught:
        await results.get(org, "nonsense")
    assert caught.value.field == "result_id"
