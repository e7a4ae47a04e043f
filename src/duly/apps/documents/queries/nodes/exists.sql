-- Purpose: whether there is such a folder.
select 1 from documents.nodes where org_id = %(org_id)s and node_id = %(node_id)s
