"""The doctor: nothing to say of the healthy, and the right word for those that cannot be reached."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from duly import Duly
from duly.control.doctor import Doctor, Verdict
from duly.control.doctor.doctor import CHECKS
from duly.devdb.places import shelter_for
from duly.store.migrate import migrate, migrations
from duly.testing import Cluster, FreshDatabase, pooler
from duly.testing.pooler import Pooler
from tests.control.examined import examined, of, red, skipped

WITH_SCHEMA = {check.name for check in CHECKS if "schema" in check.needs}
WITH_DATABASE = {check.name for check in CHECKS if check.needs}


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Duly]:
    """A server as users have it, and of our own: its roles are nobody else's."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("DULY_DATABASE_URL", raising=False)
        made = Duly(home=home)
        yield made
        assert made.place.server
        made.place.server.wait_until_stopped()
    shutil.rmtree(shelter_for(home), ignore_errors=True)


async def test_an_embedded_database_is_all_green(embedded: Duly) -> None:
    lines = await examined(embedded)
    assert set(lines) == {check.name for check in CHECKS}
    assert of(lines, Verdict.OK) == set(lines), lines
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
async def test_a_role_that_the_policies_do_not_bind_is_named_and_the_fix_helps(
    embedded: Duly, harm: str, part: str
) -> None:
    with psycopg.connect(embedded.place.direct_url, autocommit=True) as conn:
        conn.execute(harm)
        lines = await examined(embedded)
        assert red(lines) == {"roles"}, lines
        assert skipped(lines) == set()
        assert part in lines["roles"].seen
        conn.execute(str(lines["roles"].fix))
    assert red(await examined(embedded)) == set()


async def test_a_healthy_database_without_a_worker_is_well(app: Duly) -> None:
    report = await app.doctor.examine()
    lines = await examined(app)
    assert report.ok
    assert (red(lines), skipped(lines)) == (set(), set()), lines
    assert "the code was not seen" in lines["invariants"].seen


async def test_a_server_that_is_away_is_one_red_line() -> None:
    lines = await examined(Duly(database_url="postgresql://127.0.0.1:1/none"))
    assert red(lines) == {"connection"}
    assert skipped(lines) == WITH_DATABASE | {"invariants"}
    assert "DULY_DATABASE_URL" in str(lines["connection"].fix)
    assert lines["isolation"].seen == "cannot be told: see connection"


async def test_a_pooler_that_is_away_is_told_from_the_server(fresh: FreshDatabase) -> None:
    away = Duly(database_url="postgresql://127.0.0.1:1/none", database_direct_url=fresh.direct_url)
    lines = await examined(away)
    assert red(lines) == {"connection"}
    assert lines["connection"].seen.startswith("DULY_DATABASE_URL: ")


async def test_two_addresses_of_different_databases_are_noticed(
    cluster: Cluster, fresh: FreshDatabase
) -> None:
    with cluster.fresh() as other:
        lines = await examined(Duly(database_url=fresh.url, database_direct_url=other.direct_url))
    assert red(lines) == {"connection"}
    assert "different databases" in lines["connection"].seen


@pytest.mark.parametrize("version", [None, 12, migrations()[-2].version])
async def test_an_old_schema_is_red_and_what_needs_it_is_skipped(
    cluster: Cluster, version: int | None
) -> None:
    with cluster.fresh(migrated=False) as made:
        if version:
            migrate(made.direct_url, upto=version)
        app = Duly(database_url=made.direct_url)
        lines = await examined(app)
        assert red(lines) == {"schema"}, lines
        assert "migrations are missing" in lines["schema"].seen
        assert "duly migrate" in str(lines["schema"].fix)
        assert skipped(lines) - {"invariants"} == WITH_SCHEMA
        assert lines["isolation"].seen == "cannot be told: see schema"
        app.migrate()
        assert red(await examined(app)) == set()


async def test_a_newer_schema_is_red_and_what_needs_it_is_skipped(app: Duly, sql: psycopg.Connection) -> None:
    sql.execute("insert into duly.schema_versions values (9999, 'future', 'x')")
    lines = await examined(app)
    assert red(lines) == {"schema"}
    assert "9999" in lines["schema"].seen
    assert lines["schema"].fix == "update duly"
    assert skipped(lines) == WITH_SCHEMA


@contextmanager
def pooled(cluster: Cluster, mode: str, name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
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


async def test_a_transaction_pooler_needs_a_way_around_it(
    cluster: Cluster, fresh: FreshDatabase, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
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
        assert rightly["pooler"].seen.startswith("transaction mode")


@pytest.mark.parametrize(("mode", "expected"), [("session", set()), ("statement", {"pooler"})])
async def test_a_session_pooler_is_as_good_as_none_and_a_statement_pooler_is_good_for_nothing(
    cluster: Cluster,
    sql: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
    expected: set[str],
) -> None:
    with pooled(cluster, mode, sql.info.dbname, monkeypatch) as url:
        lines = await examined(Duly(database_url=url))
    assert red(lines) == expected, lines
    assert mode in lines["pooler"].seen


async def test_one_broken_check_does_not_stop_the_others(app: Duly, sql: psycopg.Connection) -> None:
    sql.execute("revoke select on duly.partitions from duly_engine")
    lines = await examined(app)
    assert red(lines) == {"partitions"}
    assert "permission denied for view partitions" in lines["partitions"].seen
    assert skipped(lines) == set()


async def test_a_doctor_that_breaks_itself_says_so(app: Duly, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: 1 / 0)
    lines = await examined(app)
    assert red(lines) == {"disk"}
    assert "ZeroDivisionError" in lines["disk"].seen


def test_an_application_has_one_doctor(app: Duly, tmp_path: Path) -> None:
    assert isinstance(app.doctor, Doctor)
    assert app.doctor is app.doctor
