-- Gates: what may start, and how much of it. A gate belongs to an org, to a job type, or to a job type of an
-- org. It can be shut (paused), narrow (running jobs at a time) or slow (starts per second): then jobs wait. Or it
-- can be full (waiting jobs): then new ones are refused.

create table duly.gates (
    -- The zero uuid stands for every org, the empty text for every job type.
    org_id uuid not null,
    job_type text not null,
    max_running integer check (max_running >= 0),
    starts_per_second double precision check (starts_per_second > 0),
    burst integer check (burst > 0),
    max_waiting integer check (max_waiting >= 0),
    paused_at timestamptz,
    paused_by text,
    pause_reason text,
    running integer not null default 0 check (running >= 0),
    tokens double precision not null default 0,
    refilled_at timestamptz not null default '-infinity',
    updated_at timestamptz not null default duly.now(),
    primary key (org_id, job_type),
    check (job_type <> '' or org_id <> '00000000-0000-0000-0000-000000000000'),
    -- Waiting jobs are counted by org.
    check (max_waiting is null or job_type = ''),
    check ((starts_per_second is null) = (burst is null)),
    check ((paused_at is null) = (paused_by is null))
) with (fillfactor = 50);
create index gates_by_type on duly.gates (job_type) where job_type <> '';
select duly.isolate('duly.gates');
grant select on duly.gates to duly_tenant, duly_operator;
grant select, insert, update on duly.gates to duly_engine;

-- A job type with a gate waits in a lane of its own, `<queue>#<job type>`, so that a shut gate never stands
-- between a claim and the jobs behind it. A gate that is open again keeps its lane.
create view duly.lanes with (security_invoker = true) as
    select distinct g.job_type from duly.gates g where g.job_type <> '';
grant select on duly.lanes to duly_engine;

create function duly.lane(p_queue text, p_job_type text) returns text
    language sql stable parallel safe
    return case when exists (select from duly.gates g where g.job_type = p_job_type and g.job_type <> '')
        then p_queue || '#' || p_job_type else p_queue end;

-- What a bucket holds by now: it fills at its rate, up to its burst.
create function duly.gate_tokens(g duly.gates) returns double precision
    language sql stable parallel safe
    return case when g.starts_per_second is not null then
        case when g.refilled_at = '-infinity' then g.burst
        else least(g.burst, g.tokens + g.starts_per_second
            * greatest(extract(epoch from duly.now() - g.refilled_at), 0)::double precision) end end;

-- How many jobs may pass now.
create function duly.gate_room(g duly.gates) returns integer
    language sql stable parallel safe
    return case when g.paused_at is not null then 0 else greatest(0, least(
        coalesce(g.max_running - g.running, 1000000),
        coalesce(floor(duly.gate_tokens(g))::integer, 1000000))) end;

grant execute on function duly.lane, duly.gate_tokens, duly.gate_room to duly_engine;

-- Count jobs off that have left these gates. A function of its own, because a settlement that waited for a row may
-- find that a gate counted it which is younger than the settlement's snapshot. Locks: gates in the order of their key.
create function duly.leave_gates(p_orgs uuid[], p_job_types text[], p_counts bigint[]) returns void
    language plpgsql
as $$
begin
    perform from duly.gates g join unnest(p_orgs, p_job_types) k(org_id, job_type) using (org_id, job_type)
        order by g.org_id, g.job_type for update of g;
    update duly.gates g set running = g.running - k.n
    from unnest(p_orgs, p_job_types, p_counts) k(org_id, job_type, n)
    where g.org_id = k.org_id and g.job_type = k.job_type;
end $$;
grant execute on function duly.leave_gates to duly_engine;

-- Which gates counted the running job: 1 its org's, 2 its type's, 4 its type's within its org.
alter table duly.job_states add column counted smallint not null default 0;

-- How many jobs of an org wait, counted no further than needed.
create function duly.count_waiting(p_org uuid, p_enough bigint) returns bigint
    language sql stable
begin atomic
    with recursive lanes as (
        (select r.queue from duly.ready r order by r.queue limit 1)
        union all
        select (select r.queue from duly.ready r where r.queue > l.queue order by r.queue limit 1)
        from lanes l where l.queue is not null
    ), waiting as (
        select from lanes l cross join lateral (
            select from duly.ready r where r.queue = l.queue and r.org_id = p_org limit p_enough) w
        where l.queue is not null
        limit p_enough
    )
    select count(*) from waiting;
end;
grant execute on function duly.count_waiting to duly_engine;

-- The quota of waiting jobs, looked at after they were written, so that a key that is known already costs
-- nothing. No lock: an open transaction of one caller would keep all others of the org waiting. What is enqueued
-- at the same moment may go over it.
create function duly.check_waiting(p_org uuid, p_written duly.job_written[]) returns void
    language plpgsql stable
as $$
declare
    v_max integer := (select g.max_waiting from duly.gates g where g.org_id = p_org and g.job_type = '');
begin
    if v_max is not null and exists (select from unnest(p_written) w where w.created)
        and duly.count_waiting(p_org, v_max + 1) > v_max then
        perform duly.refuse('DU429', 'org_id', format('no more than %s jobs of this org may wait', v_max),
            'try again when some have started, or raise the limit');
    end if;
end $$;
grant execute on function duly.check_waiting to duly_engine;
