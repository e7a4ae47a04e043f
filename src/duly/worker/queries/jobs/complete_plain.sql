-- Purpose: complete many jobs of the plain path; returns those that are not on it any more, for `complete`.
-- Transition: finish, running -> completed. Event: job.completed, one batch per org.
-- Fence: the row of the claim, which is gone if the worker was declared lost; and `left_jobs`, which has the jobs that left
-- the plain path. An end is written once: a second one with the same key changes nothing.
-- Locks: the claims in the order of their ids. They are read in their current version, not in that of the snapshot.
-- The claims of a worker go when the last of their jobs is settled; the caller knows which. If a job is returned, they stay.
with claim as materialized (
    select c.claim_id, c.worker_id, c.claimed_at, c.commit_xid, c.left_jobs from duly.claims c
    where c.claim_id = any (%(claim_ids)s) and c.plain order by c.claim_id for update
), t as materialized (
    select t.org_id, t.job_id, c.worker_id, c.claimed_at, c.commit_xid,
           case when json_typeof(t.result) <> 'null' then t.result end as result,
           c.claim_id is not null and t.job_id <> all (c.left_jobs) as plain
    from rows from (
        unnest(%(claim_of)s::integer[]), unnest(%(org_ids)s::uuid[]), unnest(%(job_ids)s::uuid[]),
        json_array_elements(%(results)s::json)
    ) as t(claim, org_id, job_id, result)
    left join claim c on c.claim_id = (%(claim_ids)s::uuid[])[t.claim]
), ended as (
    insert into duly.job_ends (org_id, job_id, worker_id, started_at, finished_at, start_xid, has_result)
    select t.org_id, t.job_id, t.worker_id, t.claimed_at, (select duly.now()), t.commit_xid, t.result is not null
    from t where t.plain
    on conflict (org_id, job_id) do nothing
    returning org_id, job_id
), batch as (
    insert into duly.event_batches (org_id, occurred_at, event_type, event_seq, first_job, job_count, job_ids)
    select b.org_id, (select duly.now()), 'job.completed', 3, b.job_ids[1], cardinality(b.job_ids), b.job_ids
    from (select e.org_id, array_agg(e.job_id) as job_ids from ended e group by e.org_id) b
), final as (
    insert into duly.result_snapshots (org_id, job_id, result_kind, result_seq, payload, created_at)
    select t.org_id, t.job_id, 'final', 1, t.result::jsonb, (select duly.now()) from t
    where t.result is not null and (t.org_id, t.job_id) in (select e.org_id, e.job_id from ended e)
), other as materialized (
    select t.org_id, t.job_id from t where (t.org_id, t.job_id) not in (select e.org_id, e.job_id from ended e)
), settled as (
    delete from duly.claims c where c.claim_id = any (%(settled_claims)s) and not exists (select from other)
)
select o.org_id, o.job_id from other o
