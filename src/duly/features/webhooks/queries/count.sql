-- Purpose: how many endpoints an org has. Index: the primary key.
select count(*) as endpoints from duly.webhook_endpoints where org_id = %(org_id)s
