-- Purpose: what somebody is in an org, active or not. Index: the primary key.
select org_id, user_id, role, created_at from duly.members where org_id = %(org_id)s and user_id = %(user_id)s
