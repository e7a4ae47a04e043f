-- Purpose: the ids of those who administer an org. Index: the primary key.
select user_id from duly.members
where org_id = %(org_id)s and role = 'admin'
order by user_id
limit %(limit)s
