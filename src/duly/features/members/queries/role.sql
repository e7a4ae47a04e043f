-- Purpose: what somebody is in an active org. Index: the primary keys.
select m.role from duly.members m
join duly.organizations o on o.org_id = m.org_id and o.status = 'active'
where m.org_id = %(org_id)s and m.user_id = %(user_id)s
