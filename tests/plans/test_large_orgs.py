"""Events of a job and pages of a feed cost the same however many jobs there are."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from duly.db.rows import rows
from duly.testing import DatabaseCluster
from tests.plans.test_bounded_reads import Rich, check, recorded
from tests.plans.test_listing import fill


@pytest.fixture(scope="module")
def large(cluster: DatabaseCluster) -> Iterator[Rich]:
    with cluster.fresh() as made, psycopg.connect(made.direct_url, autocommit=True) as sql:
        org = fill(sql)
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
