-- name: create
-- Purpose: an extraction that somebody asked for, with their consent if it leaves the house.
insert into documents.extractions (org_id, extraction_id, document_id, version, job_id, engine, consent_given_at,
    consent_given_by, estimated_pages, estimated_cost_cents)
values (%(org_id)s, %(extraction_id)s, %(document_id)s, %(version)s, %(job_id)s, %(engine)s,
    case when %(consent_by)s::text is not null then duly.now() end, %(consent_by)s,
    %(estimated_pages)s, %(estimated_cost_cents)s)

-- name: estimate
-- Purpose: what an extraction will take, said before anything is sent.
update documents.extractions
set estimated_pages = %(pages)s, estimated_cost_cents = %(cents)s, updated_at = duly.now()
where org_id = %(org_id)s and extraction_id = %(extraction_id)s

-- name: finish
-- Purpose: an extraction has been published, with what it took.
update documents.extractions set status = %(status)s, actual_pages = %(pages)s, actual_cost_cents = %(cents)s,
    result_json = %(result)s, warnings = %(warnings)s, error_code = null, error_message = null,
    finished_at = duly.now(), updated_at = duly.now()
where org_id = %(org_id)s and extraction_id = %(extraction_id)s

-- name: forget_derived
-- Purpose: extractions of a document that have ended and are not what its text is from have left nothing, and say so.
-- Index: extractions (org_id, document_id, created_at).
update documents.extractions e set result_json = e.result_json || '{"derived": null}'
from documents.documents d
where e.org_id = %(org_id)s and e.document_id = %(document_id)s and e.result_json ->> 'derived' is not null
  and d.org_id = e.org_id and d.document_id = e.document_id
  and e.status not in ('queued', 'running') and e.extraction_id is distinct from d.extraction_id

-- name: has_older
-- Purpose: whether a document was read before, or somebody tried to. Index: extractions (org_id, document_id, created_at).
select 1 from documents.extractions e
where e.org_id = %(org_id)s and e.document_id = %(document_id)s and e.extraction_id <> %(extraction_id)s
limit 1

-- name: mark_document
-- Purpose: a document is being read, at its current version.
update documents.documents set status = 'extracting', updated_at = duly.now()
where org_id = %(org_id)s and document_id = %(document_id)s and version = %(version)s

-- name: outdated
-- Purpose: which of these extractions have ended and are not what the text of their document is from. Index: the primary keys.
select e.extraction_id from documents.extractions e
join documents.documents d on d.org_id = e.org_id and d.document_id = e.document_id
where e.org_id = %(org_id)s and e.document_id = %(document_id)s and e.extraction_id = any(%(extractions)s)
  and e.status not in ('queued', 'running') and e.extraction_id is distinct from d.extraction_id

-- name: read
-- Purpose: the extraction that the text of a document is from.
select to_jsonb(e) - 'org_id' from documents.extractions e
join documents.documents d on d.org_id = e.org_id and d.document_id = e.document_id and d.extraction_id = e.extraction_id
where e.org_id = %(org_id)s and e.document_id = %(document_id)s

-- name: start
-- Purpose: the extraction of a job that begins, made if nobody asked for it here. What was said before stays, the
-- version that it is about above all: consent was given for that one.
insert into documents.extractions as e (org_id, document_id, version, job_id, engine, status, started_at)
values (%(org_id)s, %(document_id)s, %(version)s, %(job_id)s, %(engine)s, 'running', duly.now())
on conflict (org_id, job_id) do update
    set status = 'running', started_at = coalesce(e.started_at, duly.now()), updated_at = duly.now(),
        error_code = null, error_message = null, finished_at = null
returning to_jsonb(e) - 'org_id'
