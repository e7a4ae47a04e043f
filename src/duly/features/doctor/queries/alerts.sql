-- Purpose: the open alerts of the installation, and how long ago the last worker was heard of if none lives.
-- Index: alerts_open; workers are few.
select a.severity, a.summary, a.fired_at from duly.alerts a
where a.org_id = %(system)s and a.kind not in ('dead_letter', 'no_worker') and a.resolved_at is null
union all
select 'critical', 'no worker was heard of for ' || date_trunc('second', duly.now() - w.heard_at), w.heard_at
from (
    select max(greatest(w.heartbeat_at, w.stopped_at)) as heard_at,
           bool_or(w.stopped_at is null and w.lost_at is null and w.heartbeat_at + w.lease >= duly.now()) as living
    from duly.workers w) w
where not w.living and w.heard_at < duly.now() - %(patience)s::interval
order by 3
