-- Purpose: an extraction that somebody asked for, with their consent if it leaves the house.
insert into documents.extractions (org_id, extraction_id, document_id, version, job_id, engine, consent_given_at,
    consent_given_by, estimated_pages, estimated_cost_cents)
values (%(org_id)s, %(extraction_id)s, %(document_id)s, %(version)s, %(job_id)s, %(engine)s,
    case when %(consent_by)s::text is not null then duly.now() end, %(consent_by)s,
    %(estimated_pages)s, %(estimated_cost_cents)s)
