-- Purpose: the extractions of a document, the newest first; null means from the newest.
-- Index: extractions (org_id, document_id, created_at).
select to_jsonb(e) - 'org_id' from documents.extractions e
where e.org_id = %(org_id)s and e.document_id = %(document_id)s
  and (%(before)s::uuid is null or (e.created_at, e.extraction_id) < (
      select b.created_at, b.extraction_id from documents.extractions b
      where b.org_id = %(org_id)s and b.document_id = %(document_id)s and b.extraction_id = %(before)s))
order by e.created_at desc, e.extraction_id desc
limit %(limit)s
