-- Purpose: complete many jobs that left nothing but a result; returns the attempts that were lost to another one.
-- Transition: finish, running or partial -> completed. Event: job.completed. The same as `settle` does for them, at half
-- its cost: nearly all jobs end like this. Jobs with a run identity, counts, failures or a result in the blobs go there.
-- Fence: (org_id, job_id, attempt) and the status; a terminal row is never touched.
-- Locks: state rows in the order of their key; then gates in the order of theirs.
-- `between` excludes nothing: it lets the planner expect few rows, so that it looks each of them up by its key even if
-- it plans while there are hardly any jobs. The plan is reused when there are many.
-- The claims of a worker go when the last of their jobs is settled; the caller knows which.
with t as materialized (
    select t.org_id, t.job_id, t.attempt, case when json_typeof(t.result) <> 'null' then t.result end as result
    from rows from (
        unnest(%(org_ids)s::uuid[]), unnest(%(job_ids)s::uuid[]), unnest(%(attempts)s::integer[]),
        json_array_elements(%(results)s::json)
    ) as t(org_id, job_id, attempt, result)
    where t.attempt between 0 and 2147483647
    order by org_id, job_id
), done as (
    update duly.job_states s set
        status = 'completed', outcome = 'succeeded', event_seq = s.event_seq + 1, result_seq = s.result_seq + 1,
        progress_percent = 100, updated_at = (select duly.now()), finished_at = (select duly.now()),
        retryable = null, error_code = null, error_class = null, error_message = null
    from t
    where s.org_id = t.org_id and s.job_id = t.job_id and s.attempt = t.attempt and s.status in ('running', 'partial')
    returning s.org_id, s.job_id, s.attempt, s.event_seq, s.result_seq, s.counted, t.result
), event as (
    insert into duly.event_log (
        org_id, job_id, event_seq, event_type, status, attempt, occurred_at, actor_type, actor_id)
    select d.org_id, d.job_id, d.event_seq, 'job.completed', 'completed', d.attempt, (select duly.now()), 'worker', %(worker_id)s
    from done d
), final as (
    insert into duly.result_snapshots (org_id, job_id, result_kind, result_seq, payload, created_at)
    select d.org_id, d.job_id, 'final', d.result_seq, d.result::jsonb, (select duly.now()) from done d
), freed as (
    select k.org_id, k.job_type, count(*) as n
    from done d
    join duly.job_records r on r.org_id = d.org_id and r.job_id = d.job_id
    cross join lateral (values
        (1, d.org_id, ''), (2, '00000000-0000-0000-0000-000000000000'::uuid, r.job_type), (4, d.org_id, r.job_type)
    ) k(bit, org_id, job_type)
    where d.counted > 0 and d.counted & k.bit > 0
    group by k.org_id, k.job_type
), gates as materialized (
    select duly.leave_gates(array_agg(f.org_id), array_agg(f.job_type), array_agg(f.n)) from freed f having count(*) > 0
), claim as (
    delete from duly.claims c where c.claim_id = any (%(claim_ids)s)
)
select t.org_id, t.job_id, t.attempt from t
where (t.org_id, t.job_id, t.attempt) not in (select d.org_id, d.job_id, d.attempt from done d)
  and (select count(*) from gates) >= 0
