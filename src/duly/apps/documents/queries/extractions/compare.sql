-- Purpose: what the reconciler compares with the jobs: extractions under way, those first that nobody has looked at
-- for longest, and those that ended lately, the last ones first. Each has its half: neither keeps the other waiting.
-- Index: extractions (org_id, updated_at) where queued or running; (org_id, finished_at).
(select e.extraction_id, e.job_id, e.status from documents.extractions e
 where e.org_id = %(org_id)s and e.status in ('queued', 'running') and e.job_id is not null
 order by md5(e.extraction_id::text || %(turn)s::text) limit %(limit)s / 2)
union all
(select e.extraction_id, e.job_id, e.status from documents.extractions e
 where e.org_id = %(org_id)s and e.finished_at > duly.now() - make_interval(hours => 1) and e.job_id is not null
 order by e.finished_at desc limit %(limit)s / 2)
