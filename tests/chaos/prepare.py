"""Set up the schema, orgs and schedules before a run, and clean up at its end."""

from __future__ import annotations

import asyncio
import os
import sys

import psycopg

from duly import Actor
from duly.db.migrate import migrate
from tests.chaos.app import ORGS, TABLES, app
from tests.chaos.mutant import infect

_OPERATOR = Actor.system("operator")
_SCHEDULES = [
    ("every-second", "* * * * * *", "all"),
    ("every-other", "*/2 * * * * *", "once"),
    ("thirds", "*/3 * * * * *", "skip"),
]


async def begin() -> None:
    for number, org in enumerate(ORGS):
        await app.create_org(org, f"Org {number}")
    for org, (name, cron, missed) in zip(ORGS, _SCHEDULES, strict=False):
        await app.schedules.create(
            org, name, cron=cron, job_type="chaos.tick", missed=missed, actor=_OPERATOR
        )
    await app.close()


async def end() -> None:
    for org, (name, _, _) in zip(ORGS, _SCHEDULES, strict=False):
        await app.schedules.pause(org, name, _OPERATOR, "the run is over")
    await app.close()


def make_schema(url: str) -> None:
    """Create the tables as the superuser, and a role as documented."""
    migrate(url)
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(f"create role app login noinherit password '{os.environ['DULY_CHAOS_PASSWORD']}'")
        conn.execute("grant duly_engine, duly_tenant to app")
        conn.execute(TABLES)
        infect(conn)


if __name__ == "__main__":
    if sys.argv[1] == "schema":
        make_schema(sys.argv[2])
    else:
        asyncio.run({"begin": begin, "end": end}[sys.argv[1]]())
    os._exit(0)
