-- Purpose: documents by their ids, as far as they are open now. Index: the primary key.
select to_jsonb(d) - 'org_id' from documents.documents d
where d.org_id = %(org_id)s and d.document_id = any(%(document_ids)s)
  and (d.node_id is null or d.node_id <> all(%(barred)s))
