-- Purpose: end a log-in; whose it was. Index: the primary key.
delete from duly.sessions where org_id = %(org_id)s and session_hash = %(session_hash)s
returning org_id
