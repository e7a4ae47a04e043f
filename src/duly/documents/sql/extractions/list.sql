-- Purpose: the extractions of a document, the newest first. Index: extractions (org_id, document_id, created_at).
select to_jsonb(e) - 'org_id' from documents.extractions e
where e.org_id = %(org_id)s and e.document_id = %(document_id)s
order by e.created_at desc, e.extraction_id desc
limit 100
