"""Workers of 0.9.0 and of this release side by side, and some of both killed: nothing lost, nothing twice."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest

from duly.db.migrate import migrate
from duly.testing import DatabaseCluster, FreshDatabase
from tests.journeys.consistency import check_consistency
from tests.journeys.release_process import enqueue, make_app
from tests.worker.working import WAIT_TIMEOUT, until

ROOT = Path(__file__).parents[2]
RELEASE = "bccd712f8ad59d651eabb0e6e583289551617b18"
"""The commit of 0.9.0."""
ENDED = "select not exists (select from duly.jobs where finished_at is null)"


@pytest.fixture(scope="module")
def old_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source of 0.9.0, from the history of the repository."""
    git = shutil.which("git")
    known = git and subprocess.run(
        [git, "cat-file", "-e", RELEASE], cwd=ROOT, capture_output=True, check=False
    )
    if not git or not known or known.returncode:
        pytest.skip("needs git and the history of the repository, for the source of 0.9.0")
    folder = tmp_path_factory.mktemp("release")
    archive = subprocess.run([git, "archive", RELEASE, "src"], cwd=ROOT, capture_output=True, check=True)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    return folder / "src"


class Release:
    """A release whose processes are started by their role."""

    def __init__(self, source: Path, database: FreshDatabase, blobs: Path) -> None:
        self._environment = {**os.environ, "PYTHONPATH": str(source)}
        self._where = [database.direct_url, str(blobs)]

    def start(self, verb: str, *arguments: str) -> subprocess.Popen[str]:
        program = str(ROOT / "tests" / "journeys" / "release_process.py")
        return subprocess.Popen(
            [sys.executable, program, verb, *self._where, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=self._environment,
        )

    def migrate(self) -> None:
        with self.start("migrate") as process:
            assert process.wait(WAIT_TIMEOUT) == 0

    @contextmanager
    def ready(self, verb: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """Start a process that works, and kill it in the end."""
        with self.start(verb, *arguments) as process:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == "ready"
            try:
                yield process
            finally:
                process.kill()


@pytest.fixture
def unmigrated(cluster: DatabaseCluster) -> Iterator[FreshDatabase]:
    with cluster.fresh(migrated=False) as database:
        yield database


async def test_both_releases_work_side_by_side_during_an_upgrade(
    unmigrated: FreshDatabase, old_source: Path, tmp_path: Path
) -> None:
    old = Release(old_source, unmigrated, tmp_path)
    new = Release(ROOT / "src", unmigrated, tmp_path)
    org = uuid.uuid4()
    with psycopg.connect(unmigrated.direct_url, autocommit=True) as sql, ExitStack() as stack:
        await asyncio.to_thread(old.migrate)
        sql.execute("create table public.effects (job_id uuid not null)")
        sql.execute("grant insert on public.effects to duly_tenant")
        sql.execute("insert into duly.organizations (org_id, name) values (%s, 'Acme')", [org])
        old_workers = [stack.enter_context(old.ready("work")) for _ in range(2)]
        clients = [stack.enter_context(old.ready("enqueue", str(org), str(n), "200")) for n in (0, 1000)]
        await asyncio.to_thread(clients[0].communicate, "\n", WAIT_TIMEOUT)

        migrate(unmigrated.direct_url)
        killed, stays = (stack.enter_context(new.ready("work")) for _ in range(2))
        app = make_app(unmigrated.direct_url, str(tmp_path))
        async with app:
            await enqueue(app, org, 2000, 200)
            old_workers[0].kill()
            killed.kill()
            await asyncio.to_thread(clients[1].communicate, "\n", WAIT_TIMEOUT)
            assert [client.returncode for client in clients] == [0, 0]
            await enqueue(app, org, 3000, 200)
            await until(sql, ENDED)
            assert sql.execute("select count(*) from duly.job_ends").fetchone() == (0,)
            assert sql.execute("select duly.enable_lean_records(200)").fetchone() == (None,)

            await asyncio.to_thread(old_workers[1].communicate, timeout=WAIT_TIMEOUT)
            for column in ("started_at", "heartbeat_at", "stopped_at", "lost_at"):
                sql.execute(
                    f"update duly.workers set {column} = {column} - interval '11 minutes' where layout = 1"
                )
            await until(sql, "select duly.enable_lean_records(200)")
            late_worker = stack.enter_context(old.start("work"))
            await asyncio.to_thread(late_worker.wait, WAIT_TIMEOUT)
            assert late_worker.returncode != 0
            await enqueue(app, org, 4000, 400)
            stays.kill()
            stack.enter_context(new.ready("work"))
            await enqueue(app, org, 5000, 200)
            await until(sql, ENDED)
        states = sql.execute("select status, count(*) from duly.jobs group by status").fetchall()
        assert states == [("completed", 1400)]
        assert sql.execute("select count(*) > 0 from duly.job_ends").fetchone() == (True,)
        lean = "select count(*) from duly.job_records where queued_xid is not null"
        assert sql.execute(lean).fetchone() == (600,)
        once = "select count(*), count(distinct job_id) from public.effects"
        assert sql.execute(once).fetchone() == (700, 700)
        check_consistency(sql)
