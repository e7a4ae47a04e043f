-- name: delete
-- Purpose: delete the filing rule of a type.
delete from documents.filing_rules where org_id = %(org_id)s and doc_type = %(doc_type)s

-- name: list
-- Purpose: list the filing rules by type, without those of hidden folders.
select f.doc_type, f.node_id from documents.filing_rules f
where f.org_id = %(org_id)s and f.node_id <> all(%(hidden_folders)s)
order by f.doc_type

-- name: set
-- Purpose: set the folder for documents of a type.
insert into documents.filing_rules (org_id, doc_type, node_id, set_by)
values (%(org_id)s, %(doc_type)s, %(node_id)s, %(set_by)s)
on conflict (org_id, doc_type) do update set node_id = excluded.node_id, set_by = excluded.set_by, set_at = duly.now()
