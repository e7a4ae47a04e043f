-- Purpose: an extraction of the same version by the same engine, with consent if that is given, that is under way.
-- Its job too must be: a row may not have heard yet that it was canceled.
select e.extraction_id, e.job_id from documents.extractions e
where e.org_id = %(org_id)s and e.document_id = %(document_id)s and e.version = %(version)s
  and e.engine = %(engine)s and e.status in ('queued', 'running')
  and (e.consent_given_at is not null) >= %(consent)s
  and exists (
      select from duly.jobs j
      where j.org_id = e.org_id and j.job_id = e.job_id and j.status in ('queued', 'running', 'partial'))
limit 1
