-- Purpose: a new folder.
insert into documents.nodes (org_id, parent_id, name, created_by)
values (%(org_id)s, %(parent_id)s, %(name)s, %(created_by)s)
returning node_id
