-- Purpose: a page of documents, the newest first; null filters mean all. Index: the primary key, backwards.
select to_jsonb(d) - 'org_id' from documents.documents d
where d.org_id = %(org_id)s
  and (d.node_id is null or d.node_id <> all(%(hidden_folders)s))
  and (%(node_id)s::uuid is null or d.node_id = %(node_id)s)
  and (not %(in_root)s or d.node_id is null)
  and (%(doc_type)s::text is null or d.doc_type = %(doc_type)s)
  and (%(status)s::text is null or d.status = %(status)s)
  and (%(after)s::uuid is null or d.document_id < %(after)s)
order by d.document_id desc
limit %(limit)s
