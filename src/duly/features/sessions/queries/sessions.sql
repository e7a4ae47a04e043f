-- name: close
-- Purpose: delete a session; return its org. Index: the primary key.
delete from duly.sessions where org_id = %(org_id)s and session_hash = %(session_hash)s
returning org_id

-- name: close_all
-- Purpose: delete all sessions of one key, member or operator; return their hashes. Locks: the rows.
-- Index: the primary key.
delete from duly.sessions
where org_id = %(org_id)s
  and (key_id = %(key_id)s or user_id = %(user_id)s or operator_id = %(operator_id)s)
returning session_hash

-- name: find
-- Purpose: find a session with the current rights of its owner: the scopes of a key that has not ended, or the role of a
-- member. The session of an operator has its rights by itself, and a short lifetime.
-- Index: sessions_by_hash, then the primary keys.
select s.org_id, s.key_id, s.user_id, s.operator_id, s.expires_at, k.scopes, k.environment, m.role
from duly.sessions s
join duly.organizations o on o.org_id = s.org_id and o.status = 'active'
left join duly.api_keys k on k.org_id = s.org_id and k.key_id = s.key_id
    and (k.expires_at is null or k.expires_at > duly.now())
    and (k.revoked_at is null or k.revoked_at > duly.now())
left join duly.members m on m.org_id = s.org_id and m.user_id = s.user_id
where s.session_hash = %(session_hash)s and s.expires_at > duly.now()
  and (k.key_id is not null or m.user_id is not null or s.operator_id is not null)

-- name: list
-- Purpose: list the sessions of one key, member or operator that have not expired, newest first.
-- Index: the primary key.
select session_hash, created_at, expires_at from duly.sessions
where org_id = %(org_id)s and expires_at > duly.now()
  and (key_id = %(key_id)s or user_id = %(user_id)s or operator_id = %(operator_id)s)
order by created_at desc, session_hash

-- name: open
-- Purpose: write a new session of a key, a member or an operator with the hash of its token; the token is stored nowhere.
-- Index: the primary key.
insert into duly.sessions (org_id, session_hash, key_id, user_id, operator_id, expires_at)
values (%(org_id)s, %(session_hash)s, %(key_id)s, %(user_id)s, %(operator_id)s, duly.now() + %(lifetime)s::interval)
returning expires_at
