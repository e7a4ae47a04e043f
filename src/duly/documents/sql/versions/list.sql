-- Purpose: the files that a document has been, the newest first.
select to_jsonb(v) - 'org_id' - 'document_id' from documents.document_versions v
where v.org_id = %(org_id)s and v.document_id = %(document_id)s
order by v.version desc
