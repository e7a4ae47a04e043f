"""PostgreSQL: the schema, the sessions and the statements.

`session.py` holds the only two doors to a connection: `tenant_session(org)`, bound to one org by
row level security, and `engine_session()`. Every statement is a file under `sql/<noun>/<verb>.sql`;
the modules named after nouns run them. May import the model and psycopg, nothing else of Duly.
"""
