-- Purpose: read what changes whenever the detail of a job does: the number of its last event, its last log line, and the
-- number of refused writes. Index: primary keys; a bounded number of attempts.
with j as materialized (
    select r.org_id, r.job_id, r.subject_id, coalesce(s.event_seq, 1) as event_seq, coalesce(s.attempt, 0) as fence,
           greatest(coalesce(s.attempt, 0) - %(attempts)s, 1) as first_attempt
    from duly.job_records r
    left join lateral (select x.* from duly.state_of(r.org_id, r.job_id) x limit 1) s on true
    where r.org_id = %(org_id)s and r.job_id = %(job_id)s
)
select j.subject_id, j.event_seq,
       (select array[g.attempt, g.line_seq] from duly.job_logs g where g.org_id = j.org_id and g.job_id = j.job_id
        order by g.attempt desc, g.line_seq desc limit 1) as last_log_line,
       (select count(*) from generate_series(j.first_attempt, j.fence) a(n)
        join duly.job_logs g on g.org_id = j.org_id and g.job_id = j.job_id and g.attempt = a.n
             and g.line_seq = %(refused)s) as refusals
from j
