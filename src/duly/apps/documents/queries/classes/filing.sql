-- Purpose: where documents of each type belong, as far as the folders are open.
select f.doc_type, f.node_id from documents.filing_rules f
where f.org_id = %(org_id)s and f.node_id <> all(%(barred)s)
order by f.doc_type
