-- Purpose: a document, if it lies in no closed folder.
select to_jsonb(d) - 'org_id' from documents.documents d
where d.org_id = %(org_id)s and d.document_id = %(document_id)s
  and (d.node_id is null or d.node_id <> all(%(barred)s))
