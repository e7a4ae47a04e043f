-- Purpose: apply many decided transitions; attempts that are not returned were lost to another one.
-- Transitions: finish, fail, retry, give_back, lose_lease and cancel, from running or partial.
-- A reconciliation record goes to the job's context, and to its failures if the job ends failed.
-- A job type with a failure callback is owed one: the debt is written here, and paid by the caller.
-- A cancel requested after the decision wins over going back to the queue: it was promised to the requester.
-- Fence: (org_id, job_id, attempt) and the status; a terminal row is never touched.
-- Events: those of the decision, numbered without gaps from the locked state row.
-- Locks: state rows in the order of the document, which the caller sorts by id; then rows of active_runs in
-- the order in which enqueueing locks them; then gates in the order of their key.
-- The update returns what the later parts need of the document: joining it again would compare each row with each,
-- without a hash.
-- `between` is there for the planner, as in `complete`.
-- The claims of a worker go when the last of their jobs is settled; the caller knows which.
with t as materialized (
    select * from json_to_recordset(%(transitions)s::json) as t(
        org_id uuid, job_id uuid, attempt integer, status text, outcome text, events text[], run_at timestamptz,
        gives_back boolean, error_code text, error_class text, error_message text, retryable boolean,
        canceled_by text, cancel_reason text, result jsonb, result_ref text, summary jsonb,
        summary_counts jsonb, failure_summary jsonb, detail jsonb, actor_type text, actor_id text,
        job_type text, queue text, priority smallint, run_identity_hash text, fingerprint text, error_context jsonb,
        record jsonb, owes_bridge boolean)
    where t.attempt between 0 and 2147483647
), settled as (
    update duly.job_states s set
        status = case when t.status = 'queued' and s.cancel_requested_at is not null then 'canceled' else t.status end,
        outcome = case when t.status = 'queued' and s.cancel_requested_at is not null then 'canceled' else t.outcome end,
        event_seq = s.event_seq + case
            when t.status = 'queued' and s.cancel_requested_at is not null
            then 1 + ('job.lease_lost' = any (t.events))::integer else cardinality(t.events) end,
        returned = s.returned + (t.gives_back is true)::integer,
        error_count = s.error_count + (t.error_code is not null)::integer,
        result_seq = s.result_seq + (t.status = 'completed')::integer,
        progress_percent = case t.status when 'completed' then 100 else s.progress_percent end,
        run_at = coalesce(t.run_at, s.run_at),
        worker_id = case t.status when 'queued' then null else s.worker_id end,
        updated_at = duly.now(),
        finished_at = case when t.status <> 'queued' or s.cancel_requested_at is not null then duly.now() end,
        canceled_by = coalesce(t.canceled_by, s.canceled_by),
        cancel_reason = coalesce(t.cancel_reason, s.cancel_reason),
        retryable = t.retryable,
        error_code = t.error_code,
        error_class = t.error_class,
        error_message = t.error_message,
        summary_counts = coalesce(t.summary_counts, s.summary_counts),
        failure_summary = case when t.record is null or t.status <> 'failed' then coalesce(t.failure_summary, s.failure_summary)
            else coalesce(t.failure_summary, s.failure_summary, '[]') || (t.record || jsonb_build_object('status', t.status)) end,
        context = case when t.record is null then s.context else jsonb_set(
            coalesce(s.context, '{}'), '{reconciliations}',
            coalesce(s.context -> 'reconciliations', '[]') || (t.record || jsonb_build_object('status',
                case when t.status = 'queued' and s.cancel_requested_at is not null then 'canceled' else t.status end))) end
    from t
    where s.org_id = t.org_id and s.job_id = t.job_id and s.attempt = t.attempt
      and s.status in ('running', 'partial')
    returning s.org_id, s.job_id, s.attempt, s.returned, s.status, s.outcome, s.event_seq, s.result_seq, s.counted,
        s.canceled_by, s.cancel_reason, t.status as decided, t.events, t.run_at, t.error_code, t.error_class, t.error_message,
        t.result, t.result_ref, t.summary, t.detail, t.actor_type, t.actor_id, t.job_type, t.queue, t.priority,
        t.run_identity_hash, t.fingerprint, t.error_context, t.owes_bridge
), event as (
    insert into duly.event_log (
        org_id, job_id, event_seq, event_type, status, attempt, occurred_at, actor_type, actor_id, payload)
    select s.org_id, s.job_id, s.event_seq - cardinality(l.events) + e.n, e.event_type, s.status, s.attempt,
           duly.now(), s.actor_type, s.actor_id,
           case when s.status = s.decided then s.detail
           else jsonb_build_object('canceled_by', s.canceled_by, 'cancel_reason', s.cancel_reason) end
    from settled s
    cross join lateral (
        select case
            when s.status = s.decided then s.events
            when 'job.lease_lost' = any (s.events) then array['job.lease_lost', 'job.canceled']
            else array['job.canceled'] end as events
    ) l
    cross join lateral unnest(l.events) with ordinality as e(event_type, n)
), final as (
    insert into duly.result_snapshots (
        org_id, job_id, result_kind, result_seq, payload, payload_ref, summary, created_at)
    select s.org_id, s.job_id, 'final', s.result_seq, s.result, s.result_ref, s.summary, duly.now()
    from settled s where s.status = 'completed'
), runnable as (
    insert into duly.ready (queue, org_id, rank, job_id)
    select duly.lane(s.queue, s.job_type), s.org_id, -s.priority, s.job_id
    from settled s where s.status = 'queued' and s.run_at <= duly.now()
), later as (
    insert into duly.scheduled (run_at, org_id, job_id, queue, rank)
    select s.run_at, s.org_id, s.job_id, s.queue, -s.priority
    from settled s where s.status = 'queued' and s.run_at > duly.now()
), dead as (
    insert into duly.dead_letters (
        org_id, job_id, job_type, queue, attempts, fingerprint, error_code, error_class, error_message,
        error_context, dead_at)
    select s.org_id, s.job_id, s.job_type, s.queue, s.attempt - s.returned, s.fingerprint, s.error_code,
           coalesce(s.error_class, ''), s.error_message, coalesce(s.error_context, '{}'), duly.now()
    from settled s where s.outcome = 'dead'
), debt as (
    insert into duly.bridge_debts (org_id, job_id, job_type, owed_at, due_at)
    select s.org_id, s.job_id, s.job_type, duly.now(), duly.now() from settled s where s.owes_bridge and s.status = 'failed'
), ended_run as materialized (
    select a.org_id, a.job_type, a.run_identity_hash
    from settled s
    join duly.active_runs a on a.org_id = s.org_id and a.job_type = s.job_type
        and a.run_identity_hash = s.run_identity_hash and a.job_id = s.job_id
    where s.status <> 'queued' and s.run_identity_hash is not null
    order by a.org_id, a.job_type, a.run_identity_hash
    for update of a
), run as (
    delete from duly.active_runs a using ended_run e
    where a.org_id = e.org_id and a.job_type = e.job_type and a.run_identity_hash = e.run_identity_hash
), freed as (
    select k.org_id, k.job_type, count(*) as n
    from settled s
    cross join lateral (values
        (1, s.org_id, ''), (2, '00000000-0000-0000-0000-000000000000'::uuid, s.job_type), (4, s.org_id, s.job_type)
    ) k(bit, org_id, job_type)
    where s.counted > 0 and s.counted & k.bit > 0
    group by k.org_id, k.job_type
), gates as materialized (
    -- The runs first: a transaction that waits for a locked run must not keep others from the gates.
    select duly.leave_gates(array_agg(f.org_id), array_agg(f.job_type), array_agg(f.n)) from freed f
    where (select count(*) from ended_run) >= 0
    having count(*) > 0
), claim as (
    delete from duly.claims c where c.claim_id = any (%(claim_ids)s)
)
select org_id, job_id, attempt from settled where (select count(*) from gates) >= 0
