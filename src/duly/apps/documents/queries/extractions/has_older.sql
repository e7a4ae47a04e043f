-- Purpose: whether a document was read before, or somebody tried to. Index: extractions (org_id, document_id, created_at).
select 1 from documents.extractions e
where e.org_id = %(org_id)s and e.document_id = %(document_id)s and e.extraction_id <> %(extraction_id)s
limit 1
