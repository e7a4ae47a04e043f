-- Purpose: which of these documents lie in no closed folder. Index: the primary key.
select d.document_id from documents.documents d
where d.org_id = %(org_id)s and d.document_id = any(%(documents)s)
  and (d.node_id is null or d.node_id <> all(%(barred)s))
