-- Purpose: which of these extractions have ended and are not what the text of their document is from. Index: the primary keys.
select e.extraction_id from documents.extractions e
join documents.documents d on d.org_id = e.org_id and d.document_id = e.document_id
where e.org_id = %(org_id)s and e.document_id = %(document_id)s and e.extraction_id = any(%(extractions)s)
  and e.status not in ('queued', 'running') and e.extraction_id is distinct from d.extraction_id
