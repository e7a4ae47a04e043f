-- Purpose: a page of the session's org's dead letters, the newest first. Index: dead_letters_by_time.
select org_id, job_id, job_type, queue, attempts, fingerprint, error_code, error_class, error_message, dead_at,
       resolution, resolved_at, resolved_by, resolve_reason, successor_job_id
from duly.dead_letters
where org_id = %(org_id)s and (dead_at, job_id) < (%(before_at)s, %(before_job)s)
  and (resolution is not null) = %(resolved)s
  and (%(fingerprint)s::text is null or fingerprint = %(fingerprint)s)
  and (%(job_type)s::text is null or job_type = %(job_type)s)
order by dead_at desc, job_id desc
limit %(limit)s
