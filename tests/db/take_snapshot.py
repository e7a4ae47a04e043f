"""Write the snapshots of the schemas (`./dev snapshot`)."""

from __future__ import annotations

import tempfile
from pathlib import Path

import psycopg

from duly.apps.documents.schema import SCHEMA
from duly.db.schema_snapshot import snapshot
from duly.testing import DatabaseCluster

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        cluster = DatabaseCluster(Path(home, "server"))
        with cluster.fresh(schemas=[SCHEMA]) as database, psycopg.connect(database.direct_url) as conn:
            here = Path(__file__).parent
            (here / "schema.txt").write_text(snapshot(conn), encoding="utf-8")
            documents = here.parent / "apps" / "documents" / "schema.txt"
            documents.write_text(snapshot(conn, SCHEMA.name), encoding="utf-8")
        cluster.close(wait=True)
