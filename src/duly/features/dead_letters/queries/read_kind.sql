-- Purpose: one kind of failure of the session's org: what the latest letter says, how many are open, and what became of those that
-- were resolved lately: by resolution, and the new jobs by their outcome.
-- Index: dead_letters_open for the open ones, counted to `most`; dead_letters_of_kind for the latest `look`; the primary key of
-- the states for the new jobs, so many at most.
with recent as materialized (
    select d.* from duly.dead_letters d
    where d.org_id = %(org_id)s and d.fingerprint = %(fingerprint)s
    order by d.dead_at desc, d.job_id desc limit %(look)s
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
    from (select * from recent where successor_job_id is not null order by resolved_at desc limit %(followed)s) r
    left join duly.job_records c on c.org_id = %(org_id)s and c.job_id = r.successor_job_id
    left join duly.job_states s on s.org_id = %(org_id)s and s.job_id = r.successor_job_id
)
select l.fingerprint, l.job_id, l.job_type, l.error_code, l.error_class, l.error_message, l.error_context,
       (select min(o.dead_at) from duly.dead_letters o
        where o.org_id = %(org_id)s and o.fingerprint = %(fingerprint)s and o.resolution is null) as first_dead_at,
       l.dead_at as last_dead_at,
       (select count(*) from (
            select from duly.dead_letters c where c.org_id = %(org_id)s and c.fingerprint = %(fingerprint)s
              and c.resolution is null limit %(most)s) c) as letters,
       (select coalesce(jsonb_object_agg(g.resolution, g.n), '{}') from (
            select r.resolution, count(*) as n from recent r where r.resolution is not null group by 1) g) as resolved,
       (select coalesce(jsonb_object_agg(g.status, g.n), '{}') from (
            select case when x.outcome = 'dead' then 'dead' else x.status end as status, count(*) as n
            from successor x group by 1) g) as fates,
       (select coalesce(jsonb_agg(to_jsonb(x) order by x.resolved_at desc, x.job_id), '[]') from (
            select * from successor x order by x.resolved_at desc, x.job_id limit %(shown)s) x) as successors
from latest l
