"""Isolation checks: every gap between tenants is named, with a fix that works."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from duly import Duly
from duly.testing import FreshDatabase
from tests.features.doctor.report_lines import examined, red, skipped

LEDGER, NEXT = "duly.key_ledger", "duly.event_log_default"


@pytest.mark.parametrize(
    ("harm", "line", "part"),
    [
        (
            f"drop policy tenant_isolation on {LEDGER}",
            "isolation",
            f"{LEDGER} has no policy tenant_isolation",
        ),
        (f"drop policy operator_reads on {LEDGER}", "isolation", f"{LEDGER} has no policy operator_reads"),
        (f"drop policy owner_moves on {NEXT}", "isolation", f"{NEXT} has no policy owner_moves"),
        (f"alter table {LEDGER} disable row level security", "isolation", f"{LEDGER} has no row level"),
        (f"alter table {NEXT} disable row level security", "isolation", f"{NEXT} has no row level"),
        (
            f"alter table {LEDGER} no force row level security",
            "isolation",
            f"{LEDGER} does not force row level security",
        ),
        (
            f"alter table {NEXT} no force row level security",
            "isolation",
            f"{NEXT} does not force row level security",
        ),
        (
            f"alter policy tenant_isolation on {LEDGER} using (true)",
            "isolation",
            f"the policy tenant_isolation of {LEDGER} was changed",
        ),
        (
            f"alter policy engine_works on {LEDGER} to public",
            "isolation",
            f"the policy engine_works of {LEDGER} was changed",
        ),
        (
            f"create policy oops on {LEDGER} to duly_tenant using (true)",
            "isolation",
            f"{LEDGER} has another policy, oops",
        ),
        ("alter view duly.jobs set (security_invoker = off)", "views", "duly.jobs runs with its owner's"),
        ("alter view duly.job_events reset (security_invoker)", "views", "duly.job_events runs with"),
        ("alter function duly.cancel owner to postgres", "owners", "duly.cancel(p_org"),
        ("alter function duly.cancel reset search_path", "owners", "uses the search_path of its caller"),
        (
            "alter function duly.ensure_partitions() owner to postgres",
            "owners",
            "with the rights of postgres",
        ),
        (f"alter table {LEDGER} owner to postgres", "owners", f"{LEDGER} belongs to postgres"),
    ],
)
async def test_a_gap_in_the_isolation_is_named_and_the_fix_closes_it(
    app: Duly, sql: psycopg.Connection, harm: str, line: str, part: str
) -> None:
    if "postgres" in harm:
        harm = harm.replace("postgres", sql.info.user)
        part = part.replace("postgres", sql.info.user)
    sql.execute(harm)
    lines = await examined(app)
    assert red(lines) == {line}, lines
    assert skipped(lines) == set()
    assert part in lines[line].message
    sql.execute(str(lines[line].fix))
    assert red(await examined(app)) == set()


async def test_every_tenant_table_is_checked(app: Duly, sql: psycopg.Connection) -> None:
    for (name,) in sql.execute("select tablename from pg_policies where schemaname = 'duly'").fetchall():
        sql.execute(f"alter table duly.{name} no force row level security")
    sql.execute("create table duly.forgotten (org_id uuid)")
    sql.execute("alter table duly.forgotten owner to duly_owner")
    checked = (await examined(app))["isolation"].message
    assert "duly.forgotten has no row level security" in checked
    query = "select tablename from pg_policies where schemaname = 'duly'"
    assert [
        name
        for (name,) in sql.execute(query)
        if f"duly.{name} does not force row level security" not in checked
    ] == []


@pytest.fixture
def login(fresh: FreshDatabase, sql: psycopg.Connection) -> Iterator[str]:
    """A login that is no superuser and inherits nothing."""
    name = f"{sql.info.dbname}_app"
    sql.execute(f"create role {name} login noinherit")
    yield name
    sql.execute(f"drop owned by {name} cascade")
    sql.execute(f"drop role {name}")


def _as(fresh: FreshDatabase, login: str) -> Duly:
    return Duly(database_url=fresh.direct_url.replace("postgres@", f"{login}@", 1))


async def test_a_login_with_the_roles_of_engine_and_tenant_suffices(
    fresh: FreshDatabase, sql: psycopg.Connection, login: str
) -> None:
    sql.execute(f"grant duly_engine, duly_tenant to {login}")
    lines = await examined(_as(fresh, login))
    assert (red(lines), skipped(lines)) == (set(), set()), lines
    assert "is not visible from here" in lines["disk"].message


async def test_a_login_without_a_role_gets_the_missing_grant_as_fix(
    fresh: FreshDatabase, sql: psycopg.Connection, login: str
) -> None:
    lines = await examined(_as(fresh, login))
    assert red(lines) == {"login"}, lines
    assert lines["schema"].message == "cannot be checked: see login"
    for _ in range(2):
        sql.execute(str(lines["login"].fix))
    assert red(await examined(_as(fresh, login))) == set()
