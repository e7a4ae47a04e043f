"""The compared systems: their packages and their stores."""

from __future__ import annotations

from dataclasses import dataclass

OURS = "duly"
POSTGRES, REDIS = "PostgreSQL", "Redis"
PYTHON, NODE, GO, ELIXIR = "Python", "Node", "Go", "Elixir"
TOOLCHAINS = {GO: "go", ELIXIR: "mix"}


@dataclass(frozen=True)
class System:
    """One of the compared systems; `key` names its adapter and its environment."""

    key: str
    title: str
    store: str
    packages: tuple[str, ...] = ()
    language: str = PYTHON
    oldest_python: tuple[int, int] = (3, 11)
    listens_first: bool = False
    """Its workers run only messages sent while they listen: they start before a queue is filled."""
    no_adapter: str = ""
    """Why it is listed only: an adapter that was never run would compare nothing."""


NODE_22 = ("pg@8.23.1", "node@22.23.3")
"""Both need a newer Node than many machines have; it comes from the registry, like the driver."""

SOURCE_ONLY = "published as source only, and environments are installed from PyPI and npm"


def redis_client(version: str) -> tuple[str, ...]:
    """The newest client that a system accepts, with the fast parser."""
    return f"redis[hiredis]=={version}", "hiredis==3.5.0"


SYSTEMS = (
    System(OURS, "Duly", POSTGRES),
    System("pgqueuer", "PgQueuer", POSTGRES, ("pgqueuer==1.6.0", "asyncpg==0.32.0", "uvloop==0.23.0")),
    System(
        "procrastinate", "Procrastinate", POSTGRES, ("procrastinate==3.10.0", "psycopg[binary,pool]==3.3.9")
    ),
    System("dbos", "DBOS", POSTGRES, ("dbos==3.4.0",)),
    System(
        "taskiq_pg",
        "taskiq-pg",
        POSTGRES,
        # The newest that it can be imported with.
        ("taskiq-pg==0.2.0", "taskiq==0.12.6", "asyncpg==0.32.0"),
        listens_first=True,
    ),
    System("saq_pg", "SAQ (PostgreSQL)", POSTGRES, ("saq[postgres]==0.26.4",)),
    System("absurd", "Absurd", POSTGRES, ("absurd-sdk==0.5.1", "absurdctl==0.5.1", "psycopg[binary]==3.3.9")),
    System("graphile_worker", "graphile-worker", POSTGRES, ("graphile-worker@0.18.0", *NODE_22), NODE),
    # Newer ones need a release of rrule-temporal that could not be installed.
    System("pg_boss", "pg-boss", POSTGRES, ("pg-boss@12.35.0", *NODE_22), NODE),
    System("river", "River", POSTGRES, language=GO, no_adapter=SOURCE_ONLY),
    System("oban", "Oban", POSTGRES, language=ELIXIR, no_adapter=SOURCE_ONLY),
    System(
        "oban_py",
        "Oban for Python",
        POSTGRES,
        ("oban==0.7.0", "psycopg[binary]==3.3.9", "uvloop==0.23.0"),
        oldest_python=(3, 12),
    ),
    System("celery_redis", "Celery", REDIS, ("celery[redis]==5.7.0", *redis_client("8.1.0"))),
    System("rq_redis", "RQ", REDIS, ("rq==2.12.0", *redis_client("8.1.0"))),
    System("arq_redis", "arq", REDIS, ("arq==0.28.0", *redis_client("5.3.1"))),
    System("dramatiq_redis", "Dramatiq", REDIS, ("dramatiq[redis]==2.2.1", *redis_client("8.1.0"))),
    System(
        "taskiq_redis",
        "Taskiq",
        REDIS,
        ("taskiq==0.13.0", "taskiq-redis==1.2.4", "uvloop==0.23.0", *redis_client("8.1.0")),
    ),
    System(
        "saq_redis",
        "SAQ (Redis)",
        REDIS,
        ("saq[redis]==0.26.4", "typing-extensions==4.16.0", *redis_client("7.4.1")),
    ),
)


def chosen(only: list[str], without: list[str]) -> list[System]:
    """Return the selected systems; Duly is always one of them, as the baseline."""
    known = {system.key for system in SYSTEMS}
    for key in (*only, *without):
        if key not in known:
            raise SystemExit(f"no system {key}; there are {', '.join(sorted(known))}")
    return [
        system
        for system in SYSTEMS
        if system.key == OURS or ((not only or system.key in only) and system.key not in without)
    ]
