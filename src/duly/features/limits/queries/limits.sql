-- name: change
-- Purpose: write the limits and the pause of a gate; a null `paused_by` resumes it. Index: the primary key.
-- Locks: the gate, which the caller holds. A new rate starts with a full bucket, a changed one with what is left.
update duly.gates g set
    max_running = %(max_running)s, starts_per_second = %(starts_per_second)s::float8, burst = %(burst)s::integer,
    max_waiting = %(max_waiting)s,
    paused_at = case when %(paused_by)s::text is not null then coalesce(g.paused_at, duly.now()) end,
    resumed_at = case when g.paused_at is not null and %(paused_by)s::text is null then duly.now() else g.resumed_at end,
    paused_by = %(paused_by)s, pause_reason = %(pause_reason)s,
    tokens = case when %(starts_per_second)s::float8 is null then 0
        else coalesce(least(%(burst)s::integer, duly.gate_tokens(g)), 0) end,
    refilled_at = case when %(starts_per_second)s::float8 is null or g.starts_per_second is null
        then '-infinity' else duly.now() end,
    updated_at = duly.now()
where g.org_id = %(org_id)s and g.job_type = %(job_type)s

-- name: create
-- Purpose: create an open gate, if it is missing. Index: the primary key. Waits for a transaction that creates it.
insert into duly.gates (org_id, job_type) values (%(org_id)s, %(job_type)s)
on conflict (org_id, job_type) do nothing

-- name: list
-- Purpose: read gates by key, of one org or one job type if named.
-- Index: the primary key; gates_by_type for a job type.
select nullif(g.org_id, '00000000-0000-0000-0000-000000000000') as org_id, nullif(g.job_type, '') as job_type,
       g.max_running, g.starts_per_second, g.burst, g.max_waiting, g.paused_at, g.paused_by, g.pause_reason,
       g.running, duly.gate_tokens(g) as available, g.updated_at
from duly.gates g
where (g.org_id, g.job_type) > (%(after_org)s, %(after_type)s)
  and (%(org_id)s::uuid is null or g.org_id = %(org_id)s)
  and (%(job_type)s::text is null or g.job_type = %(job_type)s)
order by g.org_id, g.job_type
limit %(limit)s

-- name: lock
-- Purpose: lock a gate for a change; claims and settlements that pass it wait. Index: the primary key.
-- Locks: the gate.
select nullif(g.org_id, '00000000-0000-0000-0000-000000000000') as org_id, nullif(g.job_type, '') as job_type,
       g.max_running, g.starts_per_second, g.burst, g.max_waiting, g.paused_at, g.paused_by, g.pause_reason,
       g.running, duly.gate_tokens(g) as available, g.updated_at
from duly.gates g where g.org_id = %(org_id)s and g.job_type = %(job_type)s
for update

-- name: read
-- Purpose: read a gate, with the current content of its token bucket. Index: the primary key.
select nullif(g.org_id, '00000000-0000-0000-0000-000000000000') as org_id, nullif(g.job_type, '') as job_type,
       g.max_running, g.starts_per_second, g.burst, g.max_waiting, g.paused_at, g.paused_by, g.pause_reason,
       g.running, duly.gate_tokens(g) as available, g.updated_at
from duly.gates g where g.org_id = %(org_id)s and g.job_type = %(job_type)s
