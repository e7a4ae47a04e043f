-- Purpose: jobs that were ready to run for longer than their policy allows, some of each queue, org and rank.
-- Index: a loose scan over ready's primary key, one step for each queue, org and rank; then the oldest ids of each,
-- which are ordered by time. Materialized, and record and state by key: a plan may otherwise read all jobs of each org.
-- The row without a job returns the position of the scan.
with recursive part as (
    (select r.queue, r.org_id, r.rank, 1 as steps from duly.ready r
     where (r.queue, r.org_id, r.rank) > (%(queue)s, %(org_id)s, %(rank)s) order by r.queue, r.org_id, r.rank limit 1)
    union all
    select n.queue, n.org_id, n.rank, p.steps + 1
    from part p
    cross join lateral (
        select r.queue, r.org_id, r.rank from duly.ready r
        where (r.queue, r.org_id, r.rank) > (p.queue, p.org_id, p.rank) order by r.queue, r.org_id, r.rank limit 1) n
    where p.steps < %(steps)s
), last as (
    select p.queue, p.org_id, p.rank, p.steps from part p order by p.steps desc limit 1
), old as materialized (
    select p.org_id, r.job_id
    from part p
    cross join lateral (
        select r.job_id from duly.ready r
        where r.queue = p.queue and r.org_id = p.org_id and r.rank = p.rank
          and r.job_id < duly.uuid7_floor(duly.now() - %(at_least)s)
        order by r.job_id limit %(limit)s) r
), stale as (
    select o.org_id, o.job_id
    from old o
    cross join lateral (
        select r.*, duly.policy_of(r.policy, r.policy_hash) as its_policy from duly.job_records r
        where r.org_id = o.org_id and r.job_id = o.job_id limit 1) r
    left join lateral (
        select s.run_at from duly.job_states s where s.org_id = o.org_id and s.job_id = o.job_id limit 1) s on true
    where greatest(coalesce(s.run_at, r.run_at), duly.resumed_at(r.org_id, r.queue, r.job_type))
          < duly.now() - duly.stale_after(r.its_policy, 'queued_stale_after', %(usual)s)
      and duly.is_judged(r.its_policy) and not duly.is_paused(r.org_id, r.queue, r.job_type)
    limit %(limit)s
)
select l.queue, l.org_id, l.rank, l.steps, s.org_id, s.job_id from last l left join stale s on true
