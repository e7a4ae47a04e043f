-- Purpose: a page of the session's org's dead letters, the newest first. Index: dead_letters_by_time; the primary key of
-- the jobs, whose records they may outlive.
select l.org_id, l.job_id, l.job_type, r.subject_id, l.queue, l.attempts, l.fingerprint, l.error_code, l.error_class,
       l.error_message, l.dead_at, r.job_id is not null as kept, l.resolution, l.resolved_at, l.resolved_by,
       l.resolve_reason, l.successor_job_id
from (
    select * from duly.dead_letters
    where org_id = %(org_id)s and (dead_at, job_id) < (%(before_at)s, %(before_job)s)
      and (resolution is not null) = %(resolved)s
      and (%(fingerprint)s::text is null or fingerprint = %(fingerprint)s)
      and (%(job_type)s::text is null or job_type = %(job_type)s)
    order by dead_at desc, job_id desc
    limit %(limit)s
) l
left join lateral (
    select r.job_id, r.subject_id from duly.job_records r where r.org_id = l.org_id and r.job_id = l.job_id limit 1
) r on true
order by l.dead_at desc, l.job_id desc
