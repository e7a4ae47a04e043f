"""PostgreSQL: sessions, connection pool, statements, migrations and the listener.

`Database.tenant(org_id)` opens a session that row level security binds to one org, `Database.engine()` one of
the engine. Statements are files below the `queries` folders; see `statements.py`.
"""
