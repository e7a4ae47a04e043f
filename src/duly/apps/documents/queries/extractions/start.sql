-- Purpose: the extraction of a job that begins, made if nobody asked for it here. What was said before stays, the
-- version that it is about above all: consent was given for that one.
insert into documents.extractions as e (org_id, document_id, version, job_id, engine, status, started_at)
values (%(org_id)s, %(document_id)s, %(version)s, %(job_id)s, %(engine)s, 'running', duly.now())
on conflict (org_id, job_id) do update
    set status = 'running', started_at = coalesce(e.started_at, duly.now()), updated_at = duly.now(),
        error_code = null, error_message = null, finished_at = null
returning to_jsonb(e) - 'org_id'
