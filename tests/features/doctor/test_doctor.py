"""The doctor: healthy and unreachable databases, schemas and poolers."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from duly import Duly
from duly.db.migrate import migrate, migrations
from duly.embedded.directories import fallback_dir_for
from duly.features.doctor.models import CheckVerdict
from duly.features.doctor.service import CHECKS, Doctor
from duly.testing import DatabaseCluster, FreshDatabase, pooler
from duly.testing.pooler import Pooler
from tests.db.release import restore_older
from tests.features.doctor.report_lines import examined, of, red, skipped

WITH_SCHEMA = {check.name for check in CHECKS if "schema" in check.needs}
WITH_DATABASE = {check.name for check in CHECKS if check.needs}


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Duly]:
    """An embedded server for this module alone: its roles are shared with no other test."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("DULY_DATABASE_URL", raising=False)
        made = Duly(home=home)
        yield made
        assert made.database_urls.server
        made.database_urls.server.wait_until_stopped()
    shutil.rmtree(fallback_dir_for(home), ignore_errors=True)


async def test_an_embedded_database_is_all_green(embedded: Duly) -> None:
    lines = await examined(embedded)
    assert set(lines) == {check.name for check in CHECKS}
    assert of(lines, CheckVerdict.OK) == set(lines), lines
    assert all(line.fix is None for line in lines.values())


@pytest.mark.parametrize(
    ("harm", "part"),
    [
        ("alter role duly_tenant bypassrls", "duly_tenant bypasses row level security"),
        ("alter role duly_operator superuser", "duly_operator is a superuser"),
        ("grant duly_engine to duly_tenant", "duly_tenant may become duly_engine"),
        ("grant pg_read_server_files to duly_operator", "duly_operator may become pg_read_server_files"),
        ("create role root bypassrls; grant root to duly_tenant", "duly_tenant may become root"),
    ],
)
async def test_a_role_that_bypasses_policies_is_named_and_the_fix_helps(
    embedded: Duly, harm: str, part: str
) -> None:
    with psycopg.connect(embedded.database_urls.direct_url, autocommit=True) as conn:
        conn.execute(harm)
        lines = await examined(embedded)
        assert red(lines) == {"roles"}, lines
        assert skipped(lines) == set()
        assert part in lines["roles"].message
        conn.execute(str(lines["roles"].fix))
    assert red(await examined(embedded)) == set()


async def test_a_healthy_database_without_a_worker_passes(app: Duly) -> None:
    report = await app.doctor.examine()
    lines = await examined(app)
    assert report.ok
    assert (red(lines), skipped(lines)) == (set(), set()), lines
    assert "to check the code, use --app" in lines["invariants"].message


async def test_an_unreachable_server_fails_one_check() -> None:
    lines = await examined(Duly(database_url="postgresql://127.0.0.1:1/none"))
    assert red(lines) == {"connection"}
    assert skipped(lines) == WITH_DATABASE | {"invariants"}
    assert "DULY_DATABASE_URL" in str(lines["connection"].fix)
    assert lines["isolation"].message == "cannot be checked: see connection"


async def test_an_unreachable_pooler_is_distinguished_from_the_server(fresh: FreshDatabase) -> None:
    away = Duly(database_url="postgresql://127.0.0.1:1/none", database_direct_url=fresh.direct_url)
    lines = await examined(away)
    assert red(lines) == {"connection"}
    assert lines["connection"].message.startswith("DULY_DATABASE_URL: ")


async def test_urls_of_different_databases_fail(cluster: DatabaseCluster, fresh: FreshDatabase) -> None:
    with cluster.fresh() as other:
        lines = await examined(Duly(database_url=fresh.url, database_direct_url=other.direct_url))
    assert red(lines) == {"connection"}
    assert "different databases" in lines["connection"].message


@pytest.mark.parametrize("version", [None, *(m.version for m in migrations()[:-1])])
async def test_an_old_schema_is_red_and_what_needs_it_is_skipped(
    cluster: DatabaseCluster, version: int | None
) -> None:
    with cluster.fresh(migrated=False) as made:
        if version:
            migrate(made.direct_url, upto=version)
        app = Duly(database_url=made.direct_url)
        lines = await examined(app)
        assert red(lines) == {"schema"}, lines
        assert "migrations are missing" in lines["schema"].message
        assert "duly migrate" in str(lines["schema"].fix)
        assert skipped(lines) - {"invariants"} == WITH_SCHEMA
        assert lines["isolation"].message == "cannot be checked: see schema"
        app.migrate()
        assert red(await examined(app)) == set()


@pytest.mark.parametrize("version", [12, 25])
async def test_a_schema_older_than_the_baseline_is_red_and_names_the_release_to_upgrade_to(
    cluster: DatabaseCluster, version: int
) -> None:
    with cluster.fresh(migrated=False) as made:
        with psycopg.connect(made.direct_url, autocommit=True) as conn:
            restore_older(conn, version)
        lines = await examined(Duly(database_url=made.direct_url))
    assert red(lines) == {"schema"}, lines
    assert f"at version {version} of duly, older than 0.9.0" in lines["schema"].message
    assert "upgrade to 0.9.0" in str(lines["schema"].fix)
    assert skipped(lines) - {"invariants"} == WITH_SCHEMA
    assert lines["isolation"].message == "cannot be checked: see schema"


async def test_a_newer_schema_is_red_and_what_needs_it_is_skipped(app: Duly, sql: psycopg.Connection) -> None:
    sql.execute("insert into duly.schema_versions values (9999, 'future', 'x')")
    lines = await examined(app)
    assert red(lines) == {"schema"}
    assert "9999" in lines["schema"].message
    assert lines["schema"].fix == "update duly"
    assert skipped(lines) == WITH_SCHEMA


@contextmanager
def pooled(cluster: DatabaseCluster, mode: str, name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The database behind pgbouncer."""
    if shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin") is None:
        pytest.skip("pgbouncer is not installed")
    config = pooler._CONFIG.replace("pool_mode = transaction", f"pool_mode = {mode}")
    monkeypatch.setattr(pooler, "_CONFIG", config)
    running = Pooler(cluster.url("postgres"))
    try:
        url = running.url.replace("/postgres?", f"/{name}?")
        _wait_for(url)
        yield url
    finally:
        running.close()


def _wait_for(url: str) -> None:
    while True:
        try:
            psycopg.connect(url).close()
            return
        except psycopg.OperationalError:
            continue


async def test_a_transaction_pooler_needs_a_direct_url(
    cluster: DatabaseCluster, fresh: FreshDatabase, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pooled(cluster, "transaction", sql.info.dbname, monkeypatch) as url:
        alone = await examined(Duly(database_url=url))
        assert red(alone) == {"pooler"}, alone
        assert skipped(alone) == {"listen"}
        assert "DULY_DATABASE_DIRECT_URL" in str(alone["pooler"].fix)
        twice = await examined(Duly(database_url=url, database_direct_url=f"{url}&application_name=direct"))
        assert red(twice) == {"pooler"}, twice
        rightly = await examined(Duly(database_url=url, database_direct_url=fresh.direct_url))
        assert (red(rightly), skipped(rightly)) == (set(), set()), rightly
        assert rightly["pooler"].message.startswith("transaction mode")


@pytest.mark.parametrize(("mode", "expected"), [("session", set()), ("statement", {"pooler"})])
async def test_a_session_pooler_passes_and_a_statement_pooler_fails(
    cluster: DatabaseCluster,
    sql: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
    expected: set[str],
) -> None:
    with pooled(cluster, mode, sql.info.dbname, monkeypatch) as url:
        lines = await examined(Duly(database_url=url))
    assert red(lines) == expected, lines
    assert mode in lines["pooler"].message


async def test_one_broken_check_does_not_stop_the_others(app: Duly, sql: psycopg.Connection) -> None:
    sql.execute("revoke select on duly.partitions from duly_engine")
    lines = await examined(app)
    assert red(lines) == {"partitions"}
    assert "permission denied for view partitions" in lines["partitions"].message
    assert skipped(lines) == set()


async def test_a_crashed_check_is_reported(app: Duly, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: 1 / 0)
    lines = await examined(app)
    assert red(lines) == {"disk"}
    assert "ZeroDivisionError" in lines["disk"].message


def test_an_application_has_one_doctor(app: Duly, tmp_path: Path) -> None:
    assert isinstance(app.doctor, Doctor)
    assert app.doctor is app.doctor
