"""For tests: real databases, created fresh from a template.

`DatabaseCluster` is one PostgreSQL server (the embedded one, or `DULY_TEST_DATABASE_URL`) with a migrated
template; `cluster.fresh()` gives a test a database of its own in a few milliseconds, behind pgbouncer if
`DULY_TEST_POOLER` is set. Nothing in the product imports this package.
"""

from duly.testing.cluster import DatabaseCluster, FreshDatabase

__all__ = ["DatabaseCluster", "FreshDatabase"]
