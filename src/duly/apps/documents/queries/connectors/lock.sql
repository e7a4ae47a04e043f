-- Purpose: one at a time gets a connector a new token.
-- Locks: its row, in a way that lets others note files of it meanwhile.
select c.connector_id from documents.connectors c
where c.org_id = %(org_id)s and c.connector_id = %(connector_id)s
for no key update
