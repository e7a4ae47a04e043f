-- Purpose: whom a folder is for.
select principal, level from documents.node_grants
where org_id = %(org_id)s and node_id = %(node_id)s order by principal
