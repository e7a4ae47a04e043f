-- Purpose: the members of an org, in the order of their ids. Index: the primary key.
select org_id, user_id, role, created_at from duly.members
where org_id = %(org_id)s and user_id > %(after)s
order by user_id
limit %(limit)s
