-- Purpose: an empty folder.
delete from documents.nodes where org_id = %(org_id)s and node_id = %(node_id)s
