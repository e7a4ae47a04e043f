-- Asking for the end of a job: at once while it waits, by request while a worker holds it.

-- Take a waiting job out of the queue it is in: nothing if a worker was faster. Locks: the queue row.
create function duly.take_out(p_org uuid, p_job uuid)
returns table (org_id uuid, job_id uuid, job_type text, run_identity_hash text, due_at timestamptz)
    language sql
begin atomic
    with job as (
        select r.*, coalesce(s.run_at, r.run_at) as due_at
        from duly.job_records r left join duly.job_states s using (org_id, job_id)
        where r.org_id = p_org and r.job_id = p_job
    ), from_ready as (
        delete from duly.ready q using job j
        where q.queue = j.queue and q.org_id = j.org_id and q.rank = -j.priority and q.job_id = j.job_id
        returning q.job_id
    ), from_scheduled as (
        delete from duly.scheduled q using job j
        where q.run_at = j.due_at and q.org_id = j.org_id and q.job_id = j.job_id
        returning q.job_id
    )
    select j.org_id, j.job_id, j.job_type, j.run_identity_hash, j.due_at
    from job j
    where exists (select from from_ready) or exists (select from from_scheduled);
end;

-- queued -> canceled. Nothing is written when the job does not wait.
create function duly.cancel_waiting(
    p_org uuid, p_job uuid, p_by text, p_reason text, p_actor_type text, p_actor_id text
) returns boolean
    language sql
begin atomic
    with job as materialized (
        select * from duly.take_out(p_org, p_job)
    ), ended as (
        insert into duly.job_states as s (
            org_id, job_id, status, outcome, event_seq, run_at, updated_at, finished_at, cancel_requested_at,
            canceled_by, cancel_reason)
        select j.org_id, j.job_id, 'canceled', 'canceled', 2, j.due_at, duly.now(), duly.now(), duly.now(), p_by, p_reason
        from job j
        on conflict (org_id, job_id) do update set
            status = 'canceled', outcome = 'canceled', event_seq = s.event_seq + 1, updated_at = duly.now(),
            finished_at = duly.now(), cancel_requested_at = duly.now(), canceled_by = p_by, cancel_reason = p_reason
        where s.status = 'queued'
        returning s.org_id, s.job_id, s.event_seq, s.attempt
    ), event as (
        insert into duly.event_log (
            org_id, job_id, event_seq, event_type, status, attempt, occurred_at, actor_type, actor_id, payload)
        select e.org_id, e.job_id, e.event_seq, 'job.canceled', 'canceled', e.attempt, duly.now(),
               p_actor_type, p_actor_id, jsonb_build_object('canceled_by', p_by, 'cancel_reason', p_reason)
        from ended e
    ), run as (
        delete from duly.active_runs a using job j join ended e using (org_id, job_id)
        where a.org_id = j.org_id and a.job_type = j.job_type and a.run_identity_hash = j.run_identity_hash
          and a.job_id = j.job_id
    )
    select exists (select from ended);
end;

-- running, partial: leave the request where the worker's heartbeat finds it.
create function duly.request_cancel(
    p_org uuid, p_job uuid, p_by text, p_reason text, p_actor_type text, p_actor_id text
) returns boolean
    language sql
begin atomic
    with asked as (
        update duly.job_states s set
            cancel_requested_at = duly.now(), canceled_by = p_by, cancel_reason = p_reason,
            event_seq = s.event_seq + 1, updated_at = duly.now()
        where s.org_id = p_org and s.job_id = p_job and s.status in ('running', 'partial')
          and s.cancel_requested_at is null
        returning s.*
    ), event as (
        insert into duly.event_log (
            org_id, job_id, event_seq, event_type, status, attempt, occurred_at, actor_type, actor_id, payload)
        select a.org_id, a.job_id, a.event_seq, 'job.cancel_requested', a.status, a.attempt, duly.now(),
               p_actor_type, p_actor_id, jsonb_build_object('canceled_by', p_by, 'cancel_reason', p_reason)
        from asked a
    )
    select exists (select from asked);
end;

-- Answers canceled, requested, finished, or null when there is no such job. Idempotent.
-- The steps are statements of their own: each must see what a claim committed while the one before waited.
-- A job that moved between the steps (a retry, a promotion) is tried again, and the failed round is rolled back:
-- an update that waited in vain keeps its row lock, and with it the next round could deadlock with a claim.
create function duly.cancel(
    p_org uuid, p_job uuid, p_by text, p_reason text, p_actor_type text, p_actor_id text
) returns text
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_status text;
    v_asked boolean;
begin
    perform duly.check_session(p_org);
    for i in 1..10 loop
        begin
            if duly.cancel_waiting(p_org, p_job, p_by, p_reason, p_actor_type, p_actor_id) then
                return 'canceled';
            end if;
            if duly.request_cancel(p_org, p_job, p_by, p_reason, p_actor_type, p_actor_id) then
                return 'requested';
            end if;
            select j.status, j.cancel_requested_at is not null into v_status, v_asked
            from duly.jobs j where j.org_id = p_org and j.job_id = p_job;
            case
                when v_status is null or v_status = 'canceled' then return v_status;
                when v_status in ('completed', 'failed') then return 'finished';
                when v_asked and v_status in ('running', 'partial') then return 'requested';
                else raise sqlstate 'DU001';
            end case;
        exception when sqlstate 'DU001' then
            null;
        end;
    end loop;
    raise serialization_failure using message = 'the job kept moving; try again';
end $$;

grant execute on function duly.take_out, duly.cancel_waiting, duly.request_cancel to duly_engine;
grant execute on function duly.cancel to duly_engine, duly_tenant;
grant create on schema duly to duly_engine;
alter function duly.cancel owner to duly_engine;
revoke create on schema duly from duly_engine;
