-- Dead letters, and doing the work of an ended job again. Terminal rows never change, so that is always a new job.

-- The box is read by time. It holds what went wrong for good, which is little.
create index dead_letters_by_time on duly.dead_letters (org_id, dead_at desc, job_id desc);
alter table duly.dead_letters
    add check (resolution is null or (resolved_by is not null and resolve_reason is not null)),
    add check ((successor_job_id is not null) = (resolution is not null and resolution <> 'discarded'));

-- The key for the next repetition of a job, or the repetition that is still active: there is one at a time.
create function duly.next_replay(p_org uuid, p_job uuid, out idempotency_key text, out active_job_id uuid)
    language plpgsql stable
as $$
begin
    for n in 1..2147483647 loop
        idempotency_key := format('replay:%s:%s', p_job, n);
        select case when r.replay_of = p_job and s.finished_at is null then r.job_id end into active_job_id
        from duly.ledger l
        left join duly.job_records r on r.org_id = l.org_id and r.job_id = l.job_id
        left join duly.job_states s on s.org_id = l.org_id and s.job_id = l.job_id
        where l.org_id = p_org and l.idempotency_key = next_replay.idempotency_key and l.expires_at > duly.now();
        exit when not found or active_job_id is not null;
    end loop;
end $$;

-- What is to become of one wish for a repetition: `created` if it shall be written, `found` if `job_id` does it
-- already, `held` if its run identity is taken, by `job_id` or by another wish of the same batch.
create type duly.replay_plan as (
    ord bigint, replay_of uuid, disposition text, job_id uuid, idempotency_key text, delay double precision,
    payload jsonb, payload_ref text, payload_hash text
);

-- Jobs that are unknown, still active or no longer kept have no plan.
create function duly.plan_replays(p_org uuid, p_jobs json) returns setof duly.replay_plan
    language sql stable
begin atomic
    select a.ord, a.job_id,
           case when k.active_job_id is not null then 'found'
                when h.job_id is not null or a.turn > 1 then 'held'
                else 'created' end,
           coalesce(k.active_job_id, h.job_id), k.idempotency_key, a.delay, a.payload, a.payload_ref, a.payload_hash
    from (
        select j.*, r.job_type, r.run_identity_hash, case when r.run_identity_hash is not null then
                   row_number() over (partition by r.job_type, r.run_identity_hash order by j.ord) end as turn
        from rows from (json_to_recordset(p_jobs) as (
            job_id uuid, delay double precision, payload jsonb, payload_ref text, payload_hash text
        )) with ordinality as j(job_id, delay, payload, payload_ref, payload_hash, ord)
        join duly.job_records r on r.org_id = p_org and r.job_id = j.job_id
        join duly.job_states s on s.org_id = p_org and s.job_id = j.job_id and s.finished_at is not null
    ) a
    cross join lateral duly.next_replay(p_org, a.job_id) k
    left join duly.active_runs h
        on h.org_id = p_org and h.job_type = a.job_type and h.run_identity_hash = a.run_identity_hash
    order by a.ord;
end;

-- New jobs that do the work of ended ones again, each linked to its own by `replay_of`: the same org, project,
-- subject, correlation, policy and payload (or the one given), asked for by whoever replays. A batch names each
-- job once, with the seconds after which it may run. Their history begins with job.queued and job.replayed.
-- Locks: those of enqueueing.
create function duly.replay(
    p_org uuid, p_jobs json, p_actor_type text, p_actor_id text, p_request_id text, p_traceparent text, p_reason text
) returns table (replay_of uuid, disposition text, job_id uuid, run_at timestamptz)
    language plpgsql
as $$
#variable_conflict use_column
declare
    v_now timestamptz := duly.now();
    v_plans duly.replay_plan[] := array(select p from duly.plan_replays(p_org, p_jobs) p);
    v_new duly.replay_plan[] := array(select p from unnest(v_plans) p where p.disposition = 'created');
    v_policies jsonb;
    v_jobs json;
    v_written duly.job_written[];
begin
    with source as (
        select r.*, dense_rank() over (order by r.policy) - 1 as policy_number, p.ord, p.idempotency_key as new_key,
               v_now + make_interval(secs => p.delay) as due_at, p.payload is not null as edited,
               p.payload as new_payload, p.payload_ref as new_ref, p.payload_hash as new_hash
        from unnest(v_new) p join duly.job_records r on r.org_id = p_org and r.job_id = p.replay_of
    )
    select
        (select jsonb_agg(d.policy order by d.policy) from (select distinct s.policy from source s) d),
        (select json_agg(json_build_object(
            'job_type', s.job_type, 'policy', s.policy_number, 'replay_of', s.job_id, 'idempotency_key', s.new_key,
            'project_id', s.project_id, 'subject_id', s.subject_id, 'correlation_id', s.correlation_id,
            'run_identity_hash', s.run_identity_hash, 'metadata', s.metadata, 'scheduled_for', s.due_at,
            'payload', case when s.edited then s.new_payload else s.payload end,
            'payload_ref', case when s.edited then s.new_ref else s.payload_ref end,
            'payload_hash', case when s.edited then s.new_hash else s.payload_hash end,
            'actor_type', p_actor_type, 'actor_id', p_actor_id, 'request_id', p_request_id,
            'traceparent', p_traceparent) order by s.ord) from source s)
    into v_policies, v_jobs;
    if v_jobs is not null then
        v_written := array(select w from duly.enqueue_jobs(p_org, v_policies, v_jobs, false) w order by w.ord);
    end if;
    -- Between the plan and the write an identity may have gone to a run that is none of ours. The ledger then
    -- names that run under our key: better to begin again than to keep this.
    if exists (
        select from unnest(v_written) w left join duly.job_records r on r.org_id = p_org and r.job_id = w.job_id
        where not w.created and r.replay_of is distinct from (v_new[w.ord]).replay_of
    ) then
        raise serialization_failure using message = 'another run took the identity meanwhile; try again';
    end if;
    -- A job that was never claimed has no state and counts as event 1; this one has a second event already.
    insert into duly.job_states (org_id, job_id, status, outcome, event_seq, run_at, updated_at)
    select r.org_id, r.job_id, 'queued', 'pending', 2, r.run_at, v_now
    from unnest(v_written) w join duly.job_records r on r.org_id = p_org and r.job_id = w.job_id
    where w.created;
    insert into duly.event_log (
        org_id, job_id, event_seq, event_type, status, attempt, occurred_at, actor_type, actor_id, payload)
    select p_org, w.job_id, 2, 'job.replayed', 'queued', 0, v_now, p_actor_type, p_actor_id, jsonb_build_object(
        'replay_of', (v_new[w.ord]).replay_of, 'by', p_actor_type || ':' || p_actor_id, 'reason', p_reason)
    from unnest(v_written) w where w.created;
    return query
    select p.replay_of, p.disposition, p.job_id, null::timestamptz from unnest(v_plans) p where p.disposition <> 'created'
    union all
    select (v_new[w.ord]).replay_of, case when w.created then 'created' else 'found' end, w.job_id, r.run_at
    from unnest(v_written) w join duly.job_records r on r.org_id = p_org and r.job_id = w.job_id;
end $$;

grant execute on function duly.next_replay, duly.plan_replays, duly.replay to duly_engine;
