-- Purpose: one file that a document has been; null is the newest. Index: the primary key.
select to_jsonb(v) - 'org_id' - 'document_id' from documents.document_versions v
where v.org_id = %(org_id)s and v.document_id = %(document_id)s
  and (%(version)s::bigint is null or v.version = %(version)s)
order by v.version desc
limit 1
