-- Purpose: keep a new log-in of a key or of a member; its token is nowhere. Index: the primary key.
insert into duly.sessions (org_id, session_hash, key_id, user_id, expires_at)
values (%(org_id)s, %(session_hash)s, %(key_id)s, %(user_id)s, duly.now() + %(lasts)s::interval)
returning expires_at
