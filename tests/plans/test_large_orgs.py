"""Events of a job, pages of a feed and the capacity report cost the same however many jobs there are."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from duly import Duly
from duly.db.rows import rows
from duly.features.doctor.capacity_reader import observe
from duly.features.doctor.target import DoctorSettings, Target
from duly.testing import DatabaseCluster
from tests.plans.plan_recorder import OPTIONS, PlanRecorder
from tests.plans.test_bounded_reads import Rich, check, recorded
from tests.plans.test_listing import fill

_MINUTES = """
insert into duly.queue_minutes
select date_trunc('minute', now()) - make_interval(mins => n), 'q:' || q, gen_random_uuid(), 9, 9, 0, 0, 0, 1,
       '{1,2}', '{5,4}', '{7}', '{9}'
from generate_series(0, 2000) n cross join generate_series(1, 3) q
"""


@pytest.fixture(scope="module")
def large(cluster: DatabaseCluster) -> Iterator[Rich]:
    with cluster.fresh() as made, psycopg.connect(made.direct_url, autocommit=True) as sql:
        org = fill(sql)
        sql.execute(_MINUTES)
        sql.execute("vacuum analyze")
        yield Rich(made.direct_url, org, sql)


@pytest.mark.parametrize("plans", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize(
    ("name", "events"),
    [("events/read_after", 1), ("events/read_last", 1), ("job_detail/list_attempts", 1), ("feed/read", 20)],
)
async def test_events_are_read_with_the_records_of_their_jobs_only(
    large: Rich, plans: str, name: str, events: int
) -> None:
    jobs = large.jobs_of("job_records", count=20)
    values = {
        "org_id": large.org, "job_id": jobs[0], "job_ids": jobs, "seqs": [1] * 20, "limit": 5, "after_seq": 0,
    }  # fmt: skip
    async with recorded(large.url, plans) as (database, trace), database.tenant(large.org) as conn:
        trace.plans.clear()
        await rows(conn, name, values)
        # A feed page reads each record twice: for the event, and for its subject.
        check(trace, job_records=2 * events, event_log=20 * events, claims=events)


async def test_the_capacity_report_reads_a_day_of_statistics_and_no_job(large: Rich) -> None:
    url = psycopg.conninfo.make_conninfo(large.url, options=OPTIONS)
    conditions = Duly(database_url=url).doctor._settings.conditions
    async with Target(
        Duly(database_url=url), DoctorSettings(lambda: (url, url), False, conditions)
    ) as target:
        await target.locate()
        trace = PlanRecorder(await target.conn())
        observed = await observe(target)
    assert observed.activity.ended == pytest.approx(1_440 * 3 * 9, rel=0.01)
    assert trace.plans
    assert trace.read.keys() <= {"queue_minutes", "workers"}
    assert trace.read["queue_minutes"] <= 1_441 * 3
