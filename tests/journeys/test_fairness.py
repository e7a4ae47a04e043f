"""No org waits behind the backlog of another, however large it is."""

from __future__ import annotations

import random
import uuid
from collections import Counter

import psycopg

from duly import Duly
from duly.db.clock import Clock
from duly.db.database import Database
from duly.worker.claim import Claimer
from tests.journeys.backlog import fill


async def test_ten_jobs_behind_a_million_are_claimed_within_two_rounds(
    app: Duly, acting: uuid.UUID, database: Database, sql: psycopg.Connection
) -> None:
    @app.job("step.take")
    def take(n: int) -> None: ...

    giant = uuid.uuid4()
    fill(sql, {giant: 1_000_000})
    claimer = Claimer(database, ("q:default",), Clock())
    assert len(await claimer.round(uuid.uuid4(), 100)) == 100, "the giant is being served"
    await app.enqueue_many([take.call(n) for n in range(10)])
    rounds = [await claimer.round(uuid.uuid4(), 100) for _ in range(2)]
    served = Counter(job.org_id for taken in rounds for job in taken)
    assert served[acting] == 10
    assert served[giant] >= 50, "slots do not stay empty for long"


async def test_a_thousand_orgs_of_unequal_backlog_are_served_equally(
    database: Database, sql: psycopg.Connection
) -> None:
    dice = random.Random(7)
    sizes = {uuid.uuid4(): dice.choice([35, 40, 60, 200]) for _ in range(1000)}
    fill(sql, sizes)
    # Three workers with slots of their own, in no particular order, as long as every org has jobs.
    workers = [(uuid.uuid4(), Claimer(database, ("q:default",), Clock()), slots) for slots in (7, 40, 100)]
    served: Counter[uuid.UUID] = Counter()
    while served.total() < 30_000:
        worker_id, claimer, slots = dice.choice(workers)
        served.update(job.org_id for job in await claimer.round(worker_id, slots))
    shares = [served[org] for org in sizes]
    mean = sum(shares) / len(shares)
    assert sum(shares) ** 2 / (len(shares) * sum(share**2 for share in shares)) >= 0.99, "Jain's index"
    assert all(abs(share - mean) <= 0.1 * mean for share in shares)
