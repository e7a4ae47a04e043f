-- Purpose: extractions of a document that have ended and are not what its text is from have left nothing, and say so.
-- Index: extractions (org_id, document_id, created_at).
update documents.extractions e set result_json = e.result_json || '{"derived": null}'
from documents.documents d
where e.org_id = %(org_id)s and e.document_id = %(document_id)s and e.result_json ->> 'derived' is not null
  and d.org_id = e.org_id and d.document_id = e.document_id
  and e.status not in ('queued', 'running') and e.extraction_id is distinct from d.extraction_id
