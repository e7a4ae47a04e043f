"""Shared fixtures: one PostgreSQL server per test run, one fresh database per test."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psycopg
import pytest
from hypothesis import settings

from duly import Actor, Duly, context
from duly.db.database import Database
from duly.testing import DatabaseCluster, FreshDatabase

# A loaded machine is no reason to fail: examples have no deadline.
settings.register_profile("duly", deadline=None)
settings.load_profile("duly")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[DatabaseCluster]:
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if worker_id != "master" else base
    database_cluster = DatabaseCluster(shared / "server")
    yield database_cluster
    database_cluster.close()


@pytest.fixture
def fresh(cluster: DatabaseCluster) -> Iterator[FreshDatabase]:
    with cluster.fresh() as created:
        yield created


@pytest.fixture
async def database(fresh: FreshDatabase) -> AsyncIterator[Database]:
    async with Database(fresh.url, pooled=fresh.url != fresh.direct_url) as opened:
        yield opened


@pytest.fixture
def sql(fresh: FreshDatabase) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """A superuser connection, which bypasses row-level security: to inspect rows and to tamper with them."""
    with psycopg.connect(fresh.direct_url, autocommit=True) as conn:
        yield conn


@pytest.fixture
async def app(fresh: FreshDatabase, tmp_path: Path) -> AsyncIterator[Duly]:
    created = Duly(
        database_url=fresh.url,
        database_direct_url=fresh.direct_url if fresh.url != fresh.direct_url else None,
        blobs_url=str(tmp_path / "blobs"),
        maintenance=False,
    )
    yield created
    await created.close()


@pytest.fixture
def org(sql: psycopg.Connection[tuple[object, ...]]) -> uuid.UUID:
    """An org with an empty audit trail."""
    org_id = uuid.uuid4()
    sql.execute("insert into duly.organizations (org_id, name) values (%s, 'Acme')", [org_id])
    return org_id


@pytest.fixture
def acting(org: uuid.UUID) -> Iterator[uuid.UUID]:
    """Run the test with user u1 of the org as the current principal."""
    with context(org_id=org, actor=Actor.user("u1"), request_id="req-1"):
        yield org
