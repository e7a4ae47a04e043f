"""kill -9 of a client at any point: acknowledged jobs exist, and nothing is half-written."""

from __future__ import annotations

import random
import subprocess
import sys
import uuid
from pathlib import Path

import psycopg
import pytest

from duly import Duly
from duly.testing import FreshDatabase

HALF_WRITTEN = """
    select r.job_id from duly.jobs r
    left join duly.all_events e on e.org_id = r.org_id and e.job_id = r.job_id and e.event_seq = 1
    left join duly.key_ledger l on l.org_id = r.org_id and l.key_hash = duly.key_hash(r.idempotency_key)
        and l.job_id = r.job_id
    left join duly.active_runs a on a.org_id = r.org_id and a.job_id = r.job_id
    left join duly.ready q on q.org_id = r.org_id and q.job_id = r.job_id
    where e.job_id is null or l.job_id is null or a.job_id is null or q.job_id is null
"""
ORPHANS = """
    select 'ledger', job_id from duly.key_ledger union all select 'event', job_id from duly.all_events
    union all select 'ready', job_id from duly.ready union all select 'run', job_id from duly.active_runs
    except all select w, r.job_id from duly.job_records r, unnest(array['ledger', 'event', 'ready', 'run']) w
"""


def _until_killed(fresh: FreshDatabase, blobs: Path, org: uuid.UUID, name: str, answers: int) -> list[str]:
    """Start a client, kill it after this many answers; return the acknowledged jobs."""
    command = [
        sys.executable,
        "-m",
        "tests.journeys.enqueuer",
        fresh.url,
        fresh.direct_url,
        str(blobs),
        str(org),
    ]
    with subprocess.Popen([*command, name], stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout
        assert client.stdout.readline() == "ready\n"
        printed = [client.stdout.readline() for _ in range(answers)]
        client.kill()
        printed.append(client.stdout.read())
    return " ".join(printed).split()


@pytest.mark.parametrize("seed", range(4))
async def test_a_killed_client_leaves_whole_jobs_or_none(
    app: Duly, org: uuid.UUID, fresh: FreshDatabase, sql: psycopg.Connection, tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    acknowledged = [
        job_id
        for turn in range(3)
        for job_id in _until_killed(fresh, tmp_path, org, f"client-{turn}", dice.randrange(1, 60))
    ]
    # The server may still execute the killed client's last statement.
    sql.execute("select pg_terminate_backend(pid, 5000) from pg_stat_activity where pid <> pg_backend_pid() "
                "and datname = current_database() and backend_type = 'client backend'")  # fmt: skip
    stored = {str(job_id) for (job_id,) in sql.execute("select job_id from duly.job_records")}
    assert set(acknowledged) <= stored
    assert len(stored) - len(set(acknowledged)) <= 3 * 7, "at most the last call of each client is unanswered"
    assert sql.execute(HALF_WRITTEN).fetchall() == []
    assert sql.execute(ORPHANS).fetchall() == []
