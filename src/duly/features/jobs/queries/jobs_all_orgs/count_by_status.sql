-- Purpose: how many jobs of all orgs are in each status, each counted no further than `most` + 1; those that failed or
-- were canceled as far as events are kept. No index finds what completed: that is not counted.
-- Index: the primary keys of ready and scheduled; event_log_rare. Claims are few; then the primary key of the states.
with held as materialized (
    select distinct s.job_id, s.status
    from duly.claims c
    cross join lateral unnest(c.org_ids, c.job_ids) j(org_id, job_id)
    join duly.job_states s on s.org_id = j.org_id and s.job_id = j.job_id and s.status in ('running', 'partial')
    limit %(most)s + 1
)
select 'queued' as status, (select count(*) from (
    (select from duly.ready limit %(most)s + 1) union all (select from duly.scheduled limit %(most)s + 1)) w) as n
union all
select h.status, count(*) from held h group by h.status
union all
select 'failed', (select count(*) from (
    select from duly.event_log e where e.event_type = 'job.failed' limit %(most)s + 1) c)
union all
select 'canceled', (select count(*) from (
    select from duly.event_log e where e.event_type = 'job.canceled' limit %(most)s + 1) c)
