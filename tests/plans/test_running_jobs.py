"""The status of a running job costs the same, however many jobs are running."""

from __future__ import annotations

from uuid import UUID

import psycopg
import pytest

from duly.testing import FreshDatabase
from tests.plans.plan_recorder import OPTIONS, PlanRecorder

_CLAIMS = """
insert into duly.claims (claim_id, worker_id, claimed_at, org_ids, job_ids, plain, low, high, commit_xid)
select gen_random_uuid(), gen_random_uuid(), now(), array_agg(gen_random_uuid()), array_agg(j.job_id), true,
       (array_agg(j.job_id order by j.job_id))[1], (array_agg(j.job_id order by j.job_id desc))[1],
       pg_current_xact_id()
from (select duly.uuid7() as job_id, n / %s as claim from generate_series(0, 9999) n) j group by j.claim
"""


@pytest.mark.parametrize(("jobs_of_a_claim", "most"), [(1, 2), (500, 20)])
@pytest.mark.parametrize("analyzed", [False, True])
def test_a_claim_is_found_without_reading_those_of_other_jobs(
    fresh: FreshDatabase, jobs_of_a_claim: int, most: int, analyzed: bool
) -> None:
    with psycopg.connect(fresh.url, options=OPTIONS, autocommit=True) as conn:
        conn.execute(_CLAIMS, [jobs_of_a_claim])
        if analyzed:
            conn.execute("analyze duly.claims")
        recorder = PlanRecorder(conn)
        every = "select c.claim_id, c.org_ids[1], c.job_ids[1] from duly.claims c order by c.high"
        claims = conn.execute(every).fetchall()
        # One that waits is older than all that run.
        waiting = (None, claims[0][1], UUID(int=0))
        for claim_id, org_id, job_id in (claims[0], claims[len(claims) // 2], claims[-1], waiting):
            recorder.plans.clear()
            found = conn.execute("select claim_id from duly.find_plain_claim(%s, %s)", [org_id, job_id])
            assert found.fetchone() == (claim_id and (claim_id,))
            assert not recorder.scans
            assert recorder.read["claims"] <= most
