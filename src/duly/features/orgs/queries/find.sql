-- Purpose: whether an org is known, active or not. Index: the primary key.
select from duly.organizations where org_id = %(org_id)s
