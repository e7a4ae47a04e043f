-- Purpose: keep a new log-in of a key, of a member or of who looks after the installation; its token is nowhere.
-- Index: the primary key.
insert into duly.sessions (org_id, session_hash, key_id, user_id, operator_id, expires_at)
values (%(org_id)s, %(session_hash)s, %(key_id)s, %(user_id)s, %(operator_id)s, duly.now() + %(lasts)s::interval)
returning expires_at
