-- Purpose: an import through this connector has come to its end.
update documents.connectors set last_import_at = duly.now()
where org_id = %(org_id)s and connector_id = %(connector_id)s
