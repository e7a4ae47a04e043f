-- Purpose: claim up to `slots` runnable jobs of one lane, fairly between the orgs that have some, through its gates.
-- Transition: claim, queued -> running. The attempt is counted here. Event: job.started.
-- Locks: gates in the order of their key (the zero org, the lane's own gate, is the first); rows of ready, skipping
-- those that others lock; then their state rows.
-- Index: a loose scan over ready's primary key (one step per org, never the backlog), starting after the
-- org that was served last and wrapping once; then the first rows of each org in claim order. It ends with as many
-- open orgs as there are slots, or after `max_orgs` steps.
-- Each org's rows are read from the first one that the walk found: dead rows before it, not vacuumed yet, are passed over
-- once and not twice.
-- Materialized: without it the planner may claim more rows than the limit.
-- At least one row if the lane has jobs, so that the cursor moves on past orgs whose gates are closed. `more`: no claimed
-- jobs does not mean no runnable jobs, because the walk has not visited all orgs, or has moved jobs to another lane.
-- A row without a policy has the policy of the row before it. The time that each job has waited since it could have started
-- is in seconds: of the first attempt by its record, which is when it was enqueued or to run; of later ones by their state.
-- A locked gate is read in its current version, not in that of the statement's snapshot: its counts are exact.
with recursive lane_gate as materialized (
    select g.job_type, duly.gate_room(g) as room, g.max_running is not null or g.starts_per_second is not null as counts
    from duly.gates g
    where g.org_id = '00000000-0000-0000-0000-000000000000' and g.job_type = %(job_type)s
    for update
), allowed as materialized (
    -- A worker that was declared lost, and does not know it yet, would claim the jobs that are being taken from it.
    select case when exists (
        select from duly.workers w where w.worker_id = %(worker_id)s and coalesce(w.lost_at, w.stopped_at) is not null
    ) or exists (
        -- A worker that follows a notification has not checked whether the queue is paused.
        select from duly.queues q where q.queue = split_part(%(lane)s, '#', 1) and q.paused_at is not null
    ) then 0 else least(%(slots)s, coalesce((select room from lane_gate), %(slots)s)) end as slots
), walk as (
    select %(after_org)s::uuid as org_id, null::smallint as rank, null::uuid as job_id, 1 as turn, 0 as steps, 0 as found,
           false as open
    union all
    select next.org_id, next.rank, next.job_id, next.turn, w.steps + 1, w.found + gate.open::integer, gate.open
    from walk w
    cross join lateral (
        (select r.org_id, r.rank, r.job_id, w.turn from duly.ready r
         where r.queue = %(lane)s and r.org_id > w.org_id
           and r.org_id <= case w.turn when 1 then 'ffffffff-ffff-ffff-ffff-ffffffffffff' else %(after_org)s end
         order by r.org_id, r.rank, r.job_id limit 1)
        union all
        (select r.org_id, r.rank, r.job_id, 2 from duly.ready r
         where w.turn = 1 and r.queue = %(lane)s and r.org_id <= %(after_org)s
         order by r.org_id, r.rank, r.job_id limit 1)
        limit 1
    ) next
    cross join lateral (
        select coalesce(min(duly.gate_room(g)), 1) > 0 as open from duly.gates g
        where g.org_id = next.org_id and g.job_type in ('', %(job_type)s)
    ) gate
    where w.found < %(slots)s and w.steps < %(max_orgs)s
), open_orgs as materialized (
    select org_id, rank, job_id, steps as position from walk where open
), org_gates as materialized (
    select g.org_id, g.job_type, duly.gate_room(g) as room,
           g.max_running is not null or g.starts_per_second is not null as counts
    from open_orgs s
    cross join unnest(case %(job_type)s when '' then array[''] else array['', %(job_type)s] end) k(job_type)
    join duly.gates g on g.org_id = s.org_id and g.job_type = k.job_type
    where (select slots from allowed) > 0
    order by g.org_id, g.job_type
    for update of g
), orgs as materialized (
    select s.org_id, s.rank, s.job_id, s.position, g.room, coalesce(g.counted, 0) as counted, count(*) over () as many
    from open_orgs s
    left join (
        select g.org_id, min(g.room) as room, bit_or(case when g.counts then case g.job_type when '' then 1 else 4 end else 0 end) as counted
        from org_gates g group by g.org_id
    ) g using (org_id)
    where g.room is null or g.room > 0
), picked as materialized (
    select r.row_id, r.org_id, r.rank, r.job_id, o.counted
    from orgs o
    cross join lateral (
        select r.ctid as row_id, r.org_id, r.rank, r.job_id from duly.ready r
        where r.queue = %(lane)s and r.org_id = o.org_id and (r.rank, r.job_id) >= (o.rank, o.job_id)
        order by r.rank, r.job_id
        limit least(ceil((select slots from allowed)::numeric / o.many), o.room)
        for update skip locked
    ) r
    order by o.position
    limit (select slots from allowed)
), taken as (
    -- By ctid: the rows are locked and never updated. A join could be planned for an empty table, and that plan reused.
    delete from duly.ready r where r.ctid = any (array(select p.row_id from picked p))
), astray as materialized (
    -- A job from before its type had a gate moves to its lane, and waits there.
    select p.org_id, p.rank, p.job_id, r.queue || '#' || r.job_type as lane
    from picked p join duly.job_records r using (org_id, job_id)
    where %(job_type)s = '' and exists (select from duly.lanes) and r.job_type in (select l.job_type from duly.lanes l)
), moved as (
    insert into duly.ready (queue, org_id, rank, job_id) select a.lane, a.org_id, a.rank, a.job_id from astray a
), held as (
    insert into duly.job_states as s (
        org_id, job_id, status, outcome, attempt, event_seq, run_at, worker_id, attempt_started_at, started_at, updated_at,
        counted)
    select p.org_id, p.job_id, 'running', 'pending', 1, 2, (select duly.now()), %(worker_id)s, (select duly.now()), (select duly.now()), (select duly.now()),
           p.counted | case when (select counts from lane_gate) then 2 else 0 end
    from picked p where p.job_id not in (select a.job_id from astray a)
    on conflict (org_id, job_id) do update set
        status = 'running', attempt = s.attempt + 1, event_seq = s.event_seq + 1, worker_id = excluded.worker_id,
        attempt_started_at = (select duly.now()), started_at = coalesce(s.started_at, (select duly.now())), updated_at = (select duly.now()),
        counted = excluded.counted
    where s.status = 'queued'
    returning s.org_id, s.job_id, s.attempt, s.event_seq, s.returned, s.progress_percent, s.partial_count, s.context, s.counted, s.run_at
), passed as (
    select k.org_id, k.job_type, count(*) as n
    from held h
    cross join lateral (values
        (1, h.org_id, ''), (2, '00000000-0000-0000-0000-000000000000'::uuid, %(job_type)s), (4, h.org_id, %(job_type)s)
    ) k(bit, org_id, job_type)
    where h.counted > 0 and h.counted & k.bit > 0
    group by k.org_id, k.job_type
), gate as (
    update duly.gates g set running = g.running + p.n, tokens = coalesce(duly.gate_tokens(g) - p.n, 0), refilled_at = (select duly.now())
    from passed p where g.org_id = p.org_id and g.job_type = p.job_type
), event as (
    insert into duly.event_log (
        org_id, job_id, event_seq, event_type, status, attempt, occurred_at, actor_type, actor_id)
    select h.org_id, h.job_id, h.event_seq, 'job.started', 'running', h.attempt, (select duly.now()), 'worker', %(worker_id)s::text
    from held h
), claim as (
    insert into duly.claims (claim_id, worker_id, claimed_at, org_ids, job_ids)
    select %(claim_id)s, %(worker_id)s, (select duly.now()), array_agg(h.org_id order by h.job_id), array_agg(h.job_id order by h.job_id)
    from held h having count(*) > 0
)
select j.*, last.org_id as last_org,
       last.steps >= %(max_orgs)s or exists (select from astray) as more
from (select org_id, steps from walk where steps > 0 order by steps desc limit 1) last
left join (
    select h.org_id, h.job_id, h.attempt, h.returned, h.progress_percent, h.partial_count, h.context -> 'checkpoint',
           r.job_type, r.queue, r.priority, r.project_id, r.subject_id, r.actor_type, r.actor_id, r.request_id,
           r.correlation_id, r.traceparent, r.run_identity_hash, r.payload::text, r.payload_ref, r.metadata, false,
           extract(epoch from (select duly.now()) - case h.attempt when 1 then r.run_at else h.run_at end)::float8,
           case when r.policy_hash is null or r.policy_hash is distinct from lag(r.policy_hash) over claim_order then duly.policy_of(r.policy, r.policy_hash)::text end
    from held h
    cross join lateral (
        select * from duly.job_records r where r.org_id = h.org_id and r.job_id = h.job_id limit 1) r
    window claim_order as (order by r.priority desc, h.job_id)
    order by r.priority desc, h.job_id
) j on true
