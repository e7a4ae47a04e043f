-- Purpose: fail queued jobs that waited too long, or that are in no queue; for the reconciler only.
-- Transition: reconcile, queued -> failed. Events: those of the decision, job.reconciled and then job.failed.
-- Fence: the attempt, because a job may have been claimed and queued again since it was checked; then the queue row, which
-- a job that is being claimed does not have; without one, the status.
-- Locks: queue rows, then state rows, in the order of the document, which the caller sorts by id.
with t as materialized (
    select * from json_to_recordset(%(transitions)s::json) as t(
        org_id uuid, job_id uuid, attempt integer, status text, outcome text, events text[], retryable boolean, error_code text,
        error_class text, error_message text, detail jsonb, actor_type text, actor_id text, record jsonb,
        owes_bridge boolean)
), still as materialized (
    select t.org_id, t.job_id
    from t left join lateral (select x.attempt from duly.state_of(t.org_id, t.job_id) x limit 1) s on true
    where coalesce(s.attempt, 0) = t.attempt
), job as materialized (
    select j.org_id, j.job_id, j.job_type, j.run_identity_hash, j.due_at
    from still w cross join lateral duly.take_out(w.org_id, w.job_id) j
    where not %(unqueued)s
    union all
    select r.org_id, r.job_id, r.job_type, r.run_identity_hash, coalesce(s.run_at, r.run_at)
    from still w
    join duly.job_records r using (org_id, job_id)
    left join lateral (select x.status, x.run_at from duly.state_of(r.org_id, r.job_id) x limit 1) s on true
    where %(unqueued)s and coalesce(s.status, 'queued') = 'queued'
      and not exists (
          select from duly.ready q where q.queue in (r.queue, r.queue || '#' || r.job_type)
            and q.org_id = r.org_id and q.rank = -r.priority and q.job_id = r.job_id)
      and not exists (
          select from duly.scheduled q
          where q.run_at = coalesce(s.run_at, r.run_at) and q.org_id = r.org_id and q.job_id = r.job_id)
), ended as (
    insert into duly.job_states as s (
        org_id, job_id, status, outcome, event_seq, run_at, updated_at, finished_at, retryable, error_count,
        error_code, error_class, error_message, context, failure_summary)
    select j.org_id, j.job_id, t.status, t.outcome, 1 + cardinality(t.events), j.due_at, duly.now(), duly.now(),
           t.retryable, 1, t.error_code, t.error_class, t.error_message,
           jsonb_build_object('reconciliations', jsonb_build_array(t.record || jsonb_build_object('status', t.status))),
           jsonb_build_array(t.record || jsonb_build_object('status', t.status))
    from job j join t using (org_id, job_id)
    on conflict (org_id, job_id) do update set
        status = excluded.status, outcome = excluded.outcome, event_seq = s.event_seq + excluded.event_seq - 1,
        updated_at = duly.now(), finished_at = duly.now(), retryable = excluded.retryable,
        error_count = s.error_count + 1, error_code = excluded.error_code, error_class = excluded.error_class,
        error_message = excluded.error_message,
        context = jsonb_set(coalesce(s.context, '{}'), '{reconciliations}',
            coalesce(s.context -> 'reconciliations', '[]') || (excluded.context -> 'reconciliations')),
        failure_summary = coalesce(s.failure_summary, '[]') || excluded.failure_summary
    where s.status = 'queued'
    returning s.org_id, s.job_id, s.event_seq, s.attempt
), event as (
    insert into duly.event_log (
        org_id, job_id, event_seq, event_type, status, attempt, occurred_at, actor_type, actor_id, payload)
    select e.org_id, e.job_id, e.event_seq - cardinality(t.events) + v.n, v.event_type, t.status, e.attempt, duly.now(),
           t.actor_type, t.actor_id, t.detail
    from ended e join t using (org_id, job_id) cross join lateral unnest(t.events) with ordinality as v(event_type, n)
), debt as (
    insert into duly.bridge_debts (org_id, job_id, job_type, owed_at, due_at)
    select e.org_id, e.job_id, j.job_type, duly.now(), duly.now()
    from ended e join job j using (org_id, job_id) join t using (org_id, job_id) where t.owes_bridge
), run as (
    delete from duly.active_runs a using job j join ended e using (org_id, job_id)
    where a.org_id = j.org_id and a.job_type = j.job_type and a.run_identity_hash = j.run_identity_hash
      and a.job_id = j.job_id
)
select e.org_id, e.job_id, e.attempt from ended e
