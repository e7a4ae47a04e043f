-- name: create
-- Purpose: an open gate, if there is none. Index: the primary key. Another who makes it is waited for.
insert into duly.gates (org_id, job_type) values (%(org_id)s, %(job_type)s)
on conflict (org_id, job_type) do nothing

-- name: lock
-- Purpose: one gate, held for a change: claims and settlements that pass it wait. Index: the primary key.
-- Locks: the gate.
select nullif(g.org_id, '00000000-0000-0000-0000-000000000000') as org_id, nullif(g.job_type, '') as job_type,
       g.max_running, g.starts_per_second, g.burst, g.max_waiting, g.paused_at, g.paused_by, g.pause_reason,
       g.running, duly.gate_tokens(g) as available, g.updated_at
from duly.gates g where g.org_id = %(org_id)s and g.job_type = %(job_type)s
for update

-- name: read
-- Purpose: one gate, with what its bucket holds by now. Index: the primary key.
select nullif(g.org_id, '00000000-0000-0000-0000-000000000000') as org_id, nullif(g.job_type, '') as job_type,
       g.max_running, g.starts_per_second, g.burst, g.max_waiting, g.paused_at, g.paused_by, g.pause_reason,
       g.running, duly.gate_tokens(g) as available, g.updated_at
from duly.gates g where g.org_id = %(org_id)s and g.job_type = %(job_type)s
