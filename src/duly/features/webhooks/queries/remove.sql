-- Purpose: remove an endpoint with its secrets. Index: the primary key.
-- Locks: its row; waits for a relay that writes messages to it, so that none is written after.
delete from duly.webhook_endpoints where org_id = %(org_id)s and endpoint_id = %(endpoint_id)s
