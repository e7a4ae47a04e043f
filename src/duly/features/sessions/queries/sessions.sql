-- name: close
-- Purpose: end a log-in; whose it was. Index: the primary key.
delete from duly.sessions where org_id = %(org_id)s and session_hash = %(session_hash)s
returning org_id

-- name: close_all
-- Purpose: end all log-ins of one key, member or operator; their hashes. Locks: the rows. Index: the primary key.
delete from duly.sessions
where org_id = %(org_id)s
  and (key_id = %(key_id)s or user_id = %(user_id)s or operator_id = %(operator_id)s)
returning session_hash

-- name: list
-- Purpose: the log-ins of one key, member or operator that are not over, the newest first. Index: the primary key.
select session_hash, created_at, expires_at from duly.sessions
where org_id = %(org_id)s and expires_at > duly.now()
  and (key_id = %(key_id)s or user_id = %(user_id)s or operator_id = %(operator_id)s)
order by created_at desc, session_hash

-- name: open
-- Purpose: keep a new log-in of a key, of a member or of who looks after the installation; its token is nowhere.
-- Index: the primary key.
insert into duly.sessions (org_id, session_hash, key_id, user_id, operator_id, expires_at)
values (%(org_id)s, %(session_hash)s, %(key_id)s, %(user_id)s, %(operator_id)s, duly.now() + %(lasts)s::interval)
returning expires_at
