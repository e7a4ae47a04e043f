-- A cheaper look-up for a single job: its policy says by itself that it may be used. A queue that a policy names cannot be
-- deleted any more, so no enqueue has to look for it, nor for the layout.

-- Nothing but a statement of an operator can have deleted a queue that jobs were sent to.
insert into duly.queues (queue, weight) select distinct p.queue, 1 from duly.policies p on conflict do nothing;

alter table duly.policies
    -- Whether records may refer to it without more checks: all keys have moved to `key_ledger` (layout 4).
    add column lean boolean not null default false,
    add foreign key (queue) references duly.queues;
update duly.policies set lean = true where exists (select from duly.layouts l where l.layout = 4);
grant update (lean) on duly.policies to duly_engine;

-- As before, but they are marked as lean once all keys have moved.
create or replace function duly.store_policies(p_policies duly.policy_read[]) returns void
    language plpgsql set plan_cache_mode = force_generic_plan
as $$
declare
    v_lean boolean := exists (select from duly.layouts l where l.layout = 4);
begin
    insert into duly.policies (policy_hash, policy, queue, priority, category, max_attempts, ledger_ttl, lean)
    select p.policy_hash, p.policy, p.queue, p.priority, p.category, p.max_attempts, p.ledger_ttl, v_lean
    from unnest(p_policies) p
    where not exists (
            select from duly.policies o where o.policy_hash = p.policy_hash and (o.lean or not v_lean))
      and pg_try_advisory_xact_lock(484623197, hashtext(p.policy_hash::text))
    on conflict (policy_hash) do update set lean = excluded.lean where excluded.lean;
end $$;

-- As before, but only those that may be used as they are.
create or replace function duly.find_policies(p_policies text[]) returns duly.policies[]
    -- A batch has few policies: planning for their number would take longer than finding them.
    language plpgsql set plan_cache_mode = force_generic_plan
as $$
declare
    v_found duly.policies[];
begin
    for i in 1..2 loop
        v_found := array(
            select p from unnest(p_policies) with ordinality t(policy, n)
            join duly.policies p on p.policy_hash = duly.policy_hash(t.policy) and p.lean
            order by t.n);
        exit when i = 2 or cardinality(v_found) = cardinality(p_policies);
        perform duly.check_policies((select jsonb_agg(p::jsonb) from unnest(p_policies) p));
        perform duly.store_policies(array(
            select row(r.policy, duly.policy_hash(p), r.queue, r.priority, r.category, r.max_attempts, r.ledger_ttl)::duly.policy_read
            from unnest(p_policies) p
            cross join lateral unnest(duly.read_policies(jsonb_build_array(p::jsonb))) r));
    end loop;
    return v_found;
end $$;

-- As before, but it marks the policies.
create or replace function duly.enable_lean_records(p_limit integer) returns boolean
    language plpgsql
as $$
begin
    if not exists (select from duly.layouts l where l.layout = 4) then
        if not duly.enable_plain_path() then
            return null;
        end if;
        if duly.take_over_keys(p_limit) > 0 or exists (select from duly.ledger) then
            return false;
        end if;
        insert into duly.layouts (layout) values (4) on conflict do nothing;
        update duly.policies set lean = true where not lean;
    end if;
    return true;
end $$;

-- As before, with fewer look-ups: each opens and closes an index, which takes longer than all that is computed here.
create or replace function duly.write_lean_job(
    p_org uuid, p_policy text, p_job_type text, p_actor_type text, p_actor_id text, p_request_id text, p_correlation_id text,
    p_project uuid, p_traceparent text, p_parent uuid, p_job uuid, p_result uuid, p_payload jsonb, p_key text, p_options json,
    p_wake boolean
) returns boolean
    language plpgsql
as $$
declare
    v_now timestamptz := duly.now();
    v_policy uuid := duly.policy_hash(p_policy);
    v_text text := p_payload::text;
    v_hash text;
    v_subject text;
    v_ref text;
    v_metadata jsonb;
    v_queue text;
    v_lane text;
    v_priority smallint;
    v_category text;
    v_max_attempts smallint;
    v_expires_at timestamptz;
    v_gated boolean;
begin
    -- A caller whose clock is more than a day off would miss the partitions: its jobs get other ids. The first 32 of the 48
    -- bits of milliseconds in an id count 65.536 s.
    if (p_job_type <> '' and p_actor_id <> '' and p_request_id <> '' and p_correlation_id <> ''
        and p_actor_type in ('user', 'api_key', 'system', 'worker', 'operator') and jsonb_typeof(p_payload) = 'object'
        and abs(('x' || left(p_job::text, 8))::bit(32)::bigint - date_part('epoch', v_now) / 65.536) < 1318) is not true
    then
        return false;
    end if;
    if p_options is not null then
        if p_options ->> 'run_identity_hash' is not null or p_options ->> 'scheduled_for' is not null then
            return false;
        end if;
        v_subject := p_options ->> 'subject_id';
        v_ref := p_options ->> 'payload_ref';
        v_hash := p_options ->> 'payload_hash';
        v_metadata := (p_options ->> 'metadata')::jsonb;
    end if;
    if v_hash is null then
        v_hash := duly.payload_hash(p_payload, v_text);
    end if;
    for i in 1..2 loop
        select p.queue, p.priority, p.category, p.max_attempts, v_now + p.ledger_ttl, exists (select from duly.gates)
        into v_queue, v_priority, v_category, v_max_attempts, v_expires_at, v_gated
        from duly.policies p
        join duly.organizations o on o.org_id = p_org and o.status = 'active'
        where p.policy_hash = v_policy and p.lean;
        exit when found;
        if i = 2 or not exists (select from duly.layouts l where l.layout = 4) then
            return false;
        end if;
        perform duly.find_policies(array[p_policy]); -- the first job of a policy
    end loop;
    v_lane := v_queue;
    if v_gated then
        if exists (select from duly.gates g where g.org_id = p_org and g.job_type = '' and g.max_waiting is not null) then
            return false;
        end if;
        v_lane := duly.lane(v_queue, p_job_type);
    end if;
    if p_project is not null then
        perform duly.check_project(p_org, p_project);
    end if;
    insert into duly.key_ledger (org_id, key_hash, job_id, first_seen_at, expires_at)
    values (
        p_org, duly.key_hash(coalesce(p_key, duly.generated_key(
            duly.key_prefix(p_org, p_job_type, p_project), v_subject, v_hash))),
        p_job, v_now, v_expires_at)
    on conflict do nothing;
    if not found then
        return false;
    end if;
    insert into duly.event_batches (org_id, occurred_at, event_type, event_seq, first_job, job_count, job_ids)
    values (p_org, v_now, 'job.queued', 1, p_job, 1, array[p_job]);
    insert into duly.ready (queue, org_id, rank, job_id, fresh) values (v_lane, p_org, -v_priority, p_job, true);
    insert into duly.job_records (
        org_id, job_id, result_id, job_type, category, queue, priority, max_attempts, project_id, subject_id, actor_type,
        actor_id, request_id, correlation_id, traceparent, idempotency_key, payload, payload_ref, payload_hash, policy_hash,
        metadata, run_at, parent_id, created_at, queued_xid)
    values (
        p_org, p_job, p_result, p_job_type, v_category, v_queue, v_priority, v_max_attempts, p_project, v_subject, p_actor_type,
        p_actor_id, p_request_id, p_correlation_id, p_traceparent, p_key, p_payload, v_ref,
        case when v_ref is not null or octet_length(v_text) > 500 then v_hash end, v_policy, v_metadata, v_now, p_parent, v_now,
        pg_current_xact_id());
    if p_wake then
        -- It names itself, so that an idle worker claims it without a search.
        perform pg_notify('duly_ready', concat_ws(' ', v_lane, p_org, -v_priority, p_job));
    end if;
    return true;
end $$;
