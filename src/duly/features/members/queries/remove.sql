-- Purpose: end a membership; whoever it was. Index: the primary key.
delete from duly.members where org_id = %(org_id)s and user_id = %(user_id)s
returning org_id, user_id, role, created_at
