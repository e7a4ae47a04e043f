-- Purpose: how far a remote folder was read.
select c.cursor from documents.connector_cursors c
where c.org_id = %(org_id)s and c.connector_id = %(connector_id)s and c.remote_path = %(remote_path)s
