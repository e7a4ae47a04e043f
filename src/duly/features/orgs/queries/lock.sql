-- Purpose: one org, to be changed, or its keys or members. Index: the primary key.
-- Locks: its row, against other such changes; jobs are enqueued and keys believed meanwhile.
select org_id, name, status, created_at, updated_at from duly.organizations where org_id = %(org_id)s
for no key update
