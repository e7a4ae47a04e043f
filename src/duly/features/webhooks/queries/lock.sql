-- Purpose: hold an endpoint of an org for a change. Index: the primary key.
-- Locks: its row, against other such changes; events are relayed to it meanwhile.
select endpoint_id from duly.webhook_endpoints
where org_id = %(org_id)s and endpoint_id = %(endpoint_id)s
for no key update
