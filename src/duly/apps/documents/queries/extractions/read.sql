-- Purpose: the extraction that the text of a document is from.
select to_jsonb(e) - 'org_id' from documents.extractions e
join documents.documents d on d.org_id = e.org_id and d.document_id = e.document_id and d.extraction_id = e.extraction_id
where e.org_id = %(org_id)s and e.document_id = %(document_id)s
