-- Purpose: how many of these are folders that are open. Index: the primary key.
select count(*) from documents.nodes n
where n.org_id = %(org_id)s and n.node_id = any(%(nodes)s) and n.node_id <> all(%(barred)s)
