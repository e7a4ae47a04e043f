-- Purpose: of the next jobs in the order of their keys, those that are stale or in no queue; a slow scan over all jobs,
-- which finds jobs that neither a queue nor a claim refers to. The row without a job returns the position of the scan.
-- Index: the primary keys of records and states; ended jobs are left after one lookup.
with stretch as materialized (
    select r.org_id, r.job_id from duly.job_records r
    where (r.org_id, r.job_id) > (%(org_id)s, %(job_id)s) order by r.org_id, r.job_id limit %(steps)s
), last as (
    select x.org_id, x.job_id, (select count(*) from stretch) as steps from stretch x order by x.org_id desc, x.job_id desc limit 1
), active as materialized (
    select x.org_id, x.job_id, s.status in ('running', 'partial') as held, s.run_at, s.attempt_started_at
    from stretch x
    left join lateral (
        select s.status, s.run_at, s.attempt_started_at from duly.state_of(x.org_id, x.job_id) s limit 1) s on true
    where s.status is null or s.status in ('queued', 'running', 'partial')
), suspect as (
    select a.org_id, a.job_id
    from active a
    cross join lateral (
        select r.*, duly.policy_of(r.policy, r.policy_hash) as its_policy from duly.job_records r
        where r.org_id = a.org_id and r.job_id = a.job_id limit 1) r
    where duly.is_judged(r.its_policy) and case when a.held then
            a.attempt_started_at < duly.now() - duly.stale_after(r.its_policy, 'running_stale_after', %(usual_held)s)
        else coalesce(a.run_at, r.run_at) < duly.now() - duly.stale_after(r.its_policy, 'queued_stale_after', %(usual_queued)s)
            or not (
                exists (select from duly.ready q where q.queue in (r.queue, r.queue || '#' || r.job_type)
                          and q.org_id = r.org_id and q.rank = -r.priority and q.job_id = r.job_id)
                or exists (select from duly.scheduled q where q.run_at = coalesce(a.run_at, r.run_at)
                             and q.org_id = r.org_id and q.job_id = r.job_id)) end
)
select l.org_id, l.job_id, l.steps, a.org_id, a.job_id from last l left join suspect a on true
