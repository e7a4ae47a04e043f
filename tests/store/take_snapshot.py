"""Write the schema's snapshot: `./dev snapshot`."""

from __future__ import annotations

import tempfile
from pathlib import Path

import psycopg

from duly.store.snapshot import snapshot
from duly.testing import Cluster

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        cluster = Cluster(Path(home, "server"))
        with cluster.fresh() as made, psycopg.connect(made.direct_url) as conn:
            Path(__file__).with_name("schema.txt").write_text(snapshot(conn), encoding="utf-8")
        cluster.close(wait=True)
