-- Purpose: a connector is forgotten, with where it was and what it took; the documents stay.
delete from documents.connectors where org_id = %(org_id)s and connector_id = %(connector_id)s
