-- Purpose: the files that a document has been, the newest first; null means from the newest, and all. Index: the primary key.
select to_jsonb(v) - 'org_id' - 'document_id' from documents.document_versions v
where v.org_id = %(org_id)s and v.document_id = %(document_id)s
  and (%(before)s::bigint is null or v.version < %(before)s)
order by v.version desc
limit %(limit)s
