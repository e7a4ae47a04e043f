"""What the engine does all day costs the same, however much there is, and however old the statistics are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import ExitStack, asynccontextmanager
from itertools import product
from typing import NamedTuple

import psycopg
import pytest

from duly.db.pool import Connection
from duly.testing import DatabaseCluster
from tests.plans import verbs
from tests.plans.seeing import OPTIONS, Seen
from tests.plans.stock import Stock, fill, stocked
from tests.plans.verbs import BATCH, TENANT, Stage, Verb

MUCH, LITTLE = 100_000, 1_000
WORKERS, CLAIMS, OF_ONE = 6, 24, 40
"""As many as there are at most, and what one worker holds: they are as many as processes."""


class Bound(NamedTuple):
    """The most rows that a verb may read of each growing table, and the indexes that lead there."""

    rows: dict[str, int]
    indexes: set[str]


BOUNDS: dict[Verb, Bound] = {
    # One step for each org, its first jobs, and their deletion; an org has one gate at most.
    verbs.claim: Bound(
        {"ready": 3 * BATCH, "job_records": 2 * BATCH, "gates": 3 * BATCH, "workers": 1},
        {"ready_pkey", "job_records_pkey", "gates_pkey", "gates_by_type", "workers_pkey", "queues_pkey"},
    ),
    verbs.complete: Bound(
        {"job_states": BATCH, "job_records": BATCH, "claims": 1},
        {"job_states_pkey", "job_records_pkey", "claims_pkey"},
    ),
    verbs.settle: Bound(
        {"job_states": BATCH, "active_runs": 2 * BATCH, "claims": 1},
        {"job_states_pkey", "active_runs_pkey", "claims_pkey"},
    ),
    verbs.progress: Bound({"job_states": BATCH}, {"job_states_pkey"}),
    verbs.store_chunk: Bound({"job_states": 1}, {"job_states_pkey"}),
    # The first row of each lane, and of what lies in the future.
    verbs.peek: Bound(
        {"ready": 2, "scheduled": 1, "gates": 2},
        {"ready_pkey", "scheduled_pkey", "queues_pkey", "gates_pkey"},
    ),
    verbs.promote: Bound(
        {"scheduled": BATCH, "job_records": BATCH // 2},
        {"scheduled_pkey", "scheduled_by_org", "job_records_pkey"},
    ),
    verbs.enqueue: Bound(
        {"organizations": 1, "gates": 1}, {"organizations_pkey", "queues_pkey", "gates_pkey"}
    ),
    verbs.enqueue_runs: Bound(
        {"organizations": 1, "gates": 1, "active_runs": BATCH, "ledger": BATCH, "job_records": BATCH},
        {
            "organizations_pkey",
            "queues_pkey",
            "gates_pkey",
            "active_runs_pkey",
            "ledger_pkey",
            "job_records_pkey",
        },
    ),
    verbs.read: Bound({"job_records": 1, "job_states": 1}, {"job_records_pkey", "job_states_pkey"}),
    verbs.lose: Bound({"workers": WORKERS}, {"workers_pkey", "workers_beating"}),
    # All claims are looked at; then what the lost worker held.
    verbs.abandoned: Bound(
        {"claims": CLAIMS, "workers": CLAIMS, "job_states": OF_ONE, "job_records": OF_ONE},
        {"claims_pkey", "claims_by_worker", "workers_pkey", "job_states_pkey", "job_records_pkey"},
    ),
    verbs.lost: Bound(
        {"claims": CLAIMS, "workers": CLAIMS, "job_states": OF_ONE},
        {"claims_pkey", "claims_by_worker", "workers_pkey", "job_states_pkey"},
    ),
}
STATISTICS = ("of now", "of a hundred jobs", "of nothing")
REPLANNED = (verbs.claim, verbs.promote, verbs.abandoned, verbs.enqueue_runs, verbs.read)
"""For an empty table one index is as good as another: these plans are good when they are made anew."""


class Stocks:
    """Databases that are filled when they are first asked for."""

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
    """What is done on it is undone, unless somebody commits."""
    conn = await Connection.connect(stock.url, options=OPTIONS, autocommit=True, prepare_threshold=0)
    try:
        yield Stage(stock, conn, Seen(conn))
    finally:
        await conn.close()


def check(seen: Seen, bound: Bound) -> None:
    assert not seen.scans
    assert {table: rows for table, rows in seen.read.items() if rows > bound.rows.get(table, 0)} == {}
    assert seen.indexes <= bound.indexes
    assert seen.sorted <= BATCH


def every(*cases: str, of: Iterable[Verb] = BOUNDS) -> pytest.MarkDecorator:
    """Each verb in each of these cases."""

    pairs = [pytest.param(case, verb, id=f"{case}, {verb.__name__}") for case, verb in product(cases, of)]
    return pytest.mark.parametrize(("case", "verb"), pairs)


@every(*STATISTICS)
async def test_a_verb_reads_what_it_is_about_whatever_the_statistics_say(
    stocks: Stocks, case: str, verb: Verb
) -> None:
    async with stage_in(stocks.get(MUCH, case)) as stage:
        check(await stage.act(verb), BOUNDS[verb])


@every("pages")
async def test_a_verb_touches_hardly_more_pages_of_much_than_of_little(
    stocks: Stocks, case: str, verb: Verb
) -> None:
    much, little = stocks.get(MUCH, "of now"), stocks.get(LITTLE, "of now")
    async with stage_in(much) as in_much, stage_in(little) as in_little:
        pages = (await in_much.act(verb)).buffers, (await in_little.act(verb)).buffers
    assert pages[0] <= 1.5 * pages[1] + 10, pages


@every("young")
async def test_a_plan_that_was_made_in_a_young_database_serves_when_it_has_grown(
    cluster: DatabaseCluster, case: str, verb: Verb
) -> None:
    with stocked(cluster, 100, "of nothing") as young:
        async with stage_in(young) as stage:
            # A tenant's plans are made for each call at first.
            for _ in range(8 if verb in TENANT else 1):
                await stage.act(verb)
                await psycopg.AsyncConnection.commit(stage.conn)
            with psycopg.connect(young.url, autocommit=True) as conn:
                fill(conn, 10_000)
            if verb in REPLANNED:
                await stage.conn.execute("discard plans")  # as the doors do every few seconds
            stage.seen.plans.clear()
            check(await stage.act(verb), BOUNDS[verb])


@every("drained", of=(verbs.claim, verbs.promote, verbs.peek))
async def test_a_plan_that_was_made_for_an_empty_queue_serves_a_burst(
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
            stage.seen.plans.clear()
            check(await stage.act(verb), BOUNDS[verb])


@pytest.mark.parametrize("statistics", STATISTICS)
def test_a_heartbeat_reads_its_own_row_and_the_jobs_it_holds(stocks: Stocks, statistics: str) -> None:
    seen = verbs.beat(stocks.get(MUCH, statistics))
    assert not seen.scans
    assert seen.read["job_states"] == BATCH
    assert seen.read["workers"] <= WORKERS
    assert seen.indexes <= {"workers_pkey", "workers_beating", "job_states_pkey"}
