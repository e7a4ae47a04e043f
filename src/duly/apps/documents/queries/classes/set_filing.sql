-- Purpose: documents of this type belong there from now on.
insert into documents.filing_rules (org_id, doc_type, node_id, set_by)
values (%(org_id)s, %(doc_type)s, %(node_id)s, %(set_by)s)
on conflict (org_id, doc_type) do update set node_id = excluded.node_id, set_by = excluded.set_by, set_at = duly.now()
