"""Hot statements cost the same, however large the database is and however old its statistics are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import ExitStack, asynccontextmanager
from itertools import product
from typing import NamedTuple

import psycopg
import pytest

from duly.db.pool import Connection
from duly.testing import DatabaseCluster
from tests.plans import operations
from tests.plans.operations import BATCH, TENANT, Stage, Verb
from tests.plans.plan_recorder import OPTIONS, PlanRecorder
from tests.plans.stock import Stock, fill, stocked

MUCH, LITTLE = 100_000, 1_000
WORKERS, CLAIMS, OF_ONE = 6, 24, 40
"""The maximum number of workers, and of jobs per worker: they are as many as processes."""


class Bound(NamedTuple):
    """The maximum of rows that an operation may read of each growing table, and the indexes it may use."""

    rows: dict[str, int]
    indexes: set[str]


BOUNDS: dict[Verb, Bound] = {
    # One step per org, its first jobs, and their deletion; an org has at most one limit row.
    operations.claim: Bound(
        {"ready": 3 * BATCH, "job_records": 2 * BATCH, "gates": 3 * BATCH, "workers": 1},
        {"ready_pkey", "job_records_pkey", "gates_pkey", "gates_by_type", "workers_pkey", "queues_pkey"},
    ),
    operations.claim_open: Bound(
        {"ready": 3 * BATCH, "job_records": BATCH, "gates": BATCH, "workers": 1},
        {
            *("ready_pkey", "job_records_pkey", "gates_pkey", "gates_by_type", "workers_pkey", "queues_pkey"),
            "layouts_pkey",
        },
    ),
    operations.claim_named: Bound(
        {"ready": 2, "job_records": 1, "gates": 2, "workers": 1},
        {"ready_pkey", "job_records_pkey", "gates_pkey", "gates_by_type", "workers_pkey", "queues_pkey"},
    ),
    operations.complete: Bound(
        {"job_states": BATCH, "job_records": BATCH, "claims": 1},
        {"job_states_pkey", "job_records_pkey", "claims_pkey"},
    ),
    operations.settle: Bound(
        {"job_states": BATCH, "active_runs": 2 * BATCH, "claims": 1},
        {"job_states_pkey", "active_runs_pkey", "claims_pkey"},
    ),
    operations.progress: Bound({"job_states": BATCH}, {"job_states_pkey"}),
    operations.store_chunk: Bound({"job_states": 1}, {"job_states_pkey"}),
    # The first row of each lane, and of the scheduled jobs.
    operations.peek: Bound(
        {"ready": 2, "scheduled": 1, "gates": 2},
        {"ready_pkey", "scheduled_pkey", "queues_pkey", "gates_pkey"},
    ),
    operations.promote: Bound(
        {"scheduled": BATCH, "job_records": BATCH // 2},
        {"scheduled_pkey", "scheduled_by_org", "job_records_pkey"},
    ),
    operations.enqueue: Bound(
        {"organizations": 1, "gates": 1},
        {"organizations_pkey", "queues_pkey", "gates_pkey", "layouts_pkey", "policies_pkey"},
    ),
    operations.enqueue_runs: Bound(
        {"organizations": 1, "gates": 1, "active_runs": BATCH, "key_ledger": BATCH, "job_records": BATCH},
        {
            "organizations_pkey",
            "queues_pkey",
            "gates_pkey",
            "layouts_pkey",
            "policies_pkey",
            "active_runs_pkey",
            "key_ledger_pkey",
            "job_records_pkey",
        },
    ),
    # A bitmap also has claims that were rolled back.
    operations.read: Bound(
        {"job_records": 1, "job_states": 1}, {"job_records_pkey", "job_states_pkey", "claims_plain"}
    ),
    operations.lose: Bound({"workers": WORKERS}, {"workers_pkey", "workers_beating"}),
    # All claims are read, and the two of the lost worker once more; then its jobs.
    operations.abandoned: Bound(
        {"claims": CLAIMS + 2, "workers": CLAIMS + 2, "job_states": OF_ONE, "job_records": OF_ONE},
        {"claims_pkey", "claims_by_worker", "workers_pkey", "job_states_pkey", "job_records_pkey"},
    ),
    operations.lost: Bound(
        {"claims": CLAIMS, "workers": CLAIMS, "job_states": OF_ONE},
        {"claims_pkey", "claims_by_worker", "workers_pkey", "job_states_pkey"},
    ),
}
STATISTICS = ("of now", "of a hundred jobs", "of nothing")
REPLANNED = (operations.enqueue_runs, operations.read)
"""Planned while a table is small, these read it from end to end, until the session makes its plans again."""


class Stocks:
    """Databases that are filled on first use."""

    def __init__(self, cluster: DatabaseCluster, until: ExitStack) -> None:
        self._cluster = cluster
        self._until = until
        self._made: dict[tuple[int, str], Stock] = {}

    def get(self, ready: int, statistics: str) -> Stock:
        if (ready, statistics) not in self._made:
            made = self._until.enter_context(stocked(self._cluster, ready, statistics))
            self._made[ready, statistics] = made
        return self._made[ready, statistics]


@pytest.fixture(scope="module")
def stocks(cluster: DatabaseCluster) -> Iterator[Stocks]:
    with ExitStack() as until:
        yield Stocks(cluster, until)


@asynccontextmanager
async def stage_in(stock: Stock) -> AsyncIterator[Stage]:
    """Roll back whatever the operation does, unless it commits."""
    conn = await Connection.connect(stock.url, options=OPTIONS, autocommit=True, prepare_threshold=0)
    try:
        yield Stage(stock, conn, PlanRecorder(conn))
    finally:
        # Before the next operation begins: it would skip what is locked.
        await psycopg.AsyncConnection.rollback(conn)
        await conn.close()


def check(recorder: PlanRecorder, bound: Bound) -> None:
    assert not recorder.scans
    assert {table: rows for table, rows in recorder.read.items() if rows > bound.rows.get(table, 0)} == {}
    assert recorder.indexes <= bound.indexes
    assert recorder.sorted <= BATCH


def every(*cases: str, of: Iterable[Verb] = BOUNDS) -> pytest.MarkDecorator:
    """Return each operation in each of these cases."""

    pairs = [pytest.param(case, verb, id=f"{case}, {verb.__name__}") for case, verb in product(cases, of)]
    return pytest.mark.parametrize(("case", "verb"), pairs)


@every(*STATISTICS)
async def test_an_operation_reads_only_its_rows_whatever_the_statistics_say(
    stocks: Stocks, case: str, verb: Verb
) -> None:
    async with stage_in(stocks.get(MUCH, case)) as stage:
        check(await stage.act(verb), BOUNDS[verb])


@every("pages")
async def test_an_operation_touches_hardly_more_pages_in_a_large_database(
    stocks: Stocks, case: str, verb: Verb
) -> None:
    much, little = stocks.get(MUCH, "of now"), stocks.get(LITTLE, "of now")
    async with stage_in(much) as in_much, stage_in(little) as in_little:
        pages = (await in_much.act(verb)).buffers, (await in_little.act(verb)).buffers
    assert pages[0] <= 1.5 * pages[1] + 10, pages


@every("young")
async def test_a_plan_made_for_a_small_database_is_good_for_a_large_one(
    cluster: DatabaseCluster, case: str, verb: Verb
) -> None:
    with stocked(cluster, 100, "of nothing") as young:
        async with stage_in(young) as stage:
            # At first a tenant's statements are planned at each call.
            for _ in range(8 if verb in TENANT else 1):
                await stage.act(verb)
                await psycopg.AsyncConnection.commit(stage.conn)
            with psycopg.connect(young.url, autocommit=True) as conn:
                fill(conn, 10_000)
            if verb in REPLANNED:
                await stage.conn.execute("discard plans")  # as sessions do every few seconds
            stage.recorder.plans.clear()
            check(await stage.act(verb), BOUNDS[verb])


@every("drained", of=(operations.claim, operations.claim_open, operations.promote, operations.peek))
async def test_a_plan_made_for_an_empty_queue_is_good_for_a_burst(
    cluster: DatabaseCluster, case: str, verb: Verb
) -> None:
    with (
        stocked(cluster, 1_000, "of now") as drained,
        psycopg.connect(drained.url, autocommit=True) as conn,
    ):
        conn.execute("delete from duly.ready; delete from duly.scheduled")
        conn.execute("vacuum analyze duly.ready")
        conn.execute("vacuum analyze duly.scheduled")
        async with stage_in(drained) as stage:
            await stage.act(verb, in_vain=True)
            await psycopg.AsyncConnection.commit(stage.conn)
            fill(conn, 10_000)
            stage.recorder.plans.clear()
            check(await stage.act(verb), BOUNDS[verb])


@pytest.mark.parametrize("statistics", STATISTICS)
def test_a_heartbeat_reads_its_own_row_and_the_jobs_it_holds(stocks: Stocks, statistics: str) -> None:
    recorder = operations.beat(stocks.get(MUCH, statistics))
    assert not recorder.scans
    assert recorder.read["job_states"] == BATCH
    assert recorder.read["workers"] <= WORKERS
    assert recorder.indexes <= {"workers_pkey", "workers_beating", "job_states_pkey"}
