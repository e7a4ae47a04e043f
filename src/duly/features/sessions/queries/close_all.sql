-- Purpose: end all log-ins of one key, member or operator; their hashes. Locks: the rows. Index: the primary key.
delete from duly.sessions
where org_id = %(org_id)s
  and (key_id = %(key_id)s or user_id = %(user_id)s or operator_id = %(operator_id)s)
returning session_hash
