"""The doctor notices every open door between tenants, names it, and knows how to shut it."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from duly import Duly
from duly.testing import FreshDatabase
from tests.features.doctor.examined import examined, red, skipped

LEDGER, NEXT = "duly.ledger", "duly.event_log_default"


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
        (f"alter table {LEDGER} no force row level security", "isolation", f"{LEDGER} does not force it"),
        (f"alter table {NEXT} no force row level security", "isolation", f"{NEXT} does not force it"),
        (
            f"alter policy tenant_isolation on {LEDGER} using (true)",
            "isolation",
            f"the policy tenant_isolation of {LEDGER} says something else",
        ),
        (
            f"alter policy engine_works on {LEDGER} to public",
            "isolation",
            f"the policy engine_works of {LEDGER} says something else",
        ),
        (
            f"create policy oops on {LEDGER} to duly_tenant using (true)",
            "isolation",
            f"{LEDGER} has another policy, oops",
        ),
        ("alter view duly.jobs set (security_invoker = off)", "views", "duly.jobs runs with its owner's"),
        ("alter view duly.job_events reset (security_invoker)", "views", "duly.job_events runs with"),
        ("alter function duly.cancel owner to postgres", "owners", "duly.cancel(p_org"),
        ("alter function duly.cancel reset search_path", "owners", "looks up names where the caller says"),
        (
            "alter function duly.ensure_partitions() owner to postgres",
            "owners",
            "with the rights of postgres",
        ),
        (f"alter table {LEDGER} owner to postgres", "owners", f"{LEDGER} belongs to postgres"),
    ],
)
async def test_a_door_that_was_opened_is_named_and_the_fix_shuts_it(
    app: Duly, sql: psycopg.Connection, harm: str, line: str, part: str
) -> None:
    if "postgres" in harm:
        harm = harm.replace("postgres", sql.info.user)
        part = part.replace("postgres", sql.info.user)
    sql.execute(harm)
    lines = await examined(app)
    assert red(lines) == {line}, lines
    assert skipped(lines) == set()
    assert part in lines[line].seen
    sql.execute(str(lines[line].fix))
    assert red(await examined(app)) == set()


async def test_every_table_of_a_tenant_is_looked_at(app: Duly, sql: psycopg.Connection) -> None:
    for (name,) in sql.execute("select tablename from pg_policies where schemaname = 'duly'").fetchall():
        sql.execute(f"alter table duly.{name} no force row level security")
    sql.execute("create table duly.forgotten (org_id uuid)")
    sql.execute("alter table duly.forgotten owner to duly_owner")
    seen = (await examined(app))["isolation"].seen
    assert "duly.forgotten has no row level security" in seen
    query = "select tablename from pg_policies where schemaname = 'duly'"
    assert [name for (name,) in sql.execute(query) if f"duly.{name} does not force it" not in seen] == []


@pytest.fixture
def login(fresh: FreshDatabase, sql: psycopg.Connection) -> Iterator[str]:
    """Somebody who is no superuser and inherits nothing."""
    name = f"{sql.info.dbname}_app"
    sql.execute(f"create role {name} login noinherit")
    yield name
    sql.execute(f"drop owned by {name} cascade")
    sql.execute(f"drop role {name}")


def _as(fresh: FreshDatabase, login: str) -> Duly:
    return Duly(database_url=fresh.direct_url.replace("postgres@", f"{login}@", 1))


async def test_a_login_that_may_do_what_work_takes_is_enough(
    fresh: FreshDatabase, sql: psycopg.Connection, login: str
) -> None:
    sql.execute(f"grant duly_engine, duly_tenant to {login}")
    lines = await examined(_as(fresh, login))
    assert (red(lines), skipped(lines)) == (set(), set()), lines
    assert "cannot be seen from here" in lines["disk"].seen


async def test_a_login_that_lacks_a_role_is_told_which_grant_it_lacks(
    fresh: FreshDatabase, sql: psycopg.Connection, login: str
) -> None:
    lines = await examined(_as(fresh, login))
    assert red(lines) == {"login"}, lines
    assert lines["schema"].seen == "cannot be told: see login"
    for _ in range(2):
        sql.execute(str(lines["login"].fix))
    assert red(await examined(_as(fresh, login))) == set()
