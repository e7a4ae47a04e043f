-- Purpose: what a log-in is worth now: the key that it stands for, if it still counts, or the member's role. That of who
-- looks after the installation stands for itself, and is short.
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
