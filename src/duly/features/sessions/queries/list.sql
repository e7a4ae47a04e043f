-- Purpose: the log-ins of one key, member or operator that are not over, the newest first. Index: the primary key.
select session_hash, created_at, expires_at from duly.sessions
where org_id = %(org_id)s and expires_at > duly.now()
  and (key_id = %(key_id)s or user_id = %(user_id)s or operator_id = %(operator_id)s)
order by created_at desc, session_hash
