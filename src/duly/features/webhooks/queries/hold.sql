-- Purpose: hold an endpoint of an org to which messages are written. Index: the primary key.
-- Locks: its row, against removal only.
select endpoint_id from duly.webhook_endpoints
where org_id = %(org_id)s and endpoint_id = %(endpoint_id)s
for key share
