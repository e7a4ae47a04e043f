-- Purpose: read one kind of failure of the session's org: the latest letter, the number of open letters, the resolutions
-- of the latest letters, and the statuses of their new jobs.
-- Index: dead_letters_open for the open ones, counted to `max_count`; dead_letters_of_kind for the latest `max_recent`;
-- the primary key of the states for at most `max_followed` new jobs.
with recent as materialized (
    select d.* from duly.dead_letters d
    where d.org_id = %(org_id)s and d.fingerprint = %(fingerprint)s
    order by d.dead_at desc, d.job_id desc limit %(max_recent)s
), open as materialized (
    (select o.* from duly.dead_letters o
     where o.org_id = %(org_id)s and o.fingerprint = %(fingerprint)s and o.resolution is null
     order by o.dead_at desc limit 1)
), latest as (
    select * from open
    union all (select * from recent where not exists (select from open) order by dead_at desc limit 1)
), successor as materialized (
    select r.job_id as letter_job_id, r.successor_job_id as job_id, r.resolution, r.resolved_at, r.resolved_by,
           case when c.job_id is null then 'gone' else coalesce(s.status, 'queued') end as status,
           coalesce(s.outcome, 'pending') as outcome, c.subject_id
    from (select * from recent where successor_job_id is not null order by resolved_at desc limit %(max_followed)s) r
    left join duly.job_records c on c.org_id = %(org_id)s and c.job_id = r.successor_job_id
    left join lateral (select x.* from duly.state_of(%(org_id)s, r.successor_job_id) x limit 1) s on true
)
select l.fingerprint, l.job_id, l.job_type, l.error_code, l.error_class, l.error_message, l.error_context,
       (select min(o.dead_at) from duly.dead_letters o
        where o.org_id = %(org_id)s and o.fingerprint = %(fingerprint)s and o.resolution is null) as first_dead_at,
       l.dead_at as last_dead_at,
       (select count(*) from (
            select from duly.dead_letters c where c.org_id = %(org_id)s and c.fingerprint = %(fingerprint)s
              and c.resolution is null limit %(max_count)s) c) as letters,
       (select coalesce(jsonb_object_agg(g.resolution, g.n), '{}') from (
            select r.resolution, count(*) as n from recent r where r.resolution is not null group by 1) g) as resolved,
       (select coalesce(jsonb_object_agg(g.status, g.n), '{}') from (
            select case when x.outcome = 'dead' then 'dead' else x.status end as status, count(*) as n
            from successor x group by 1) g) as successor_statuses,
       (select coalesce(jsonb_agg(to_jsonb(x) order by x.resolved_at desc, x.job_id), '[]') from (
            select * from successor x order by x.resolved_at desc, x.job_id limit %(max_successors)s) x) as successors
from latest l
