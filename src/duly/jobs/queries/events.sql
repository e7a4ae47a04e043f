-- name: heads
-- Purpose: read the number of the last event and the status of each of these jobs. Index: the primary keys.
-- A job without a state is queued, and has its first event only.
select k.place, coalesce(s.event_seq, 1), coalesce(s.status, 'queued')
from unnest(%(org_ids)s::uuid[], %(job_ids)s::uuid[]) with ordinality k(org_id, job_id, place)
left join lateral (
    select s.event_seq, s.status from duly.state_of(k.org_id, k.job_id) s limit 1) s on true

-- name: read_after
-- Purpose: read the events of a job after a known one, in order. Index: the primary key.
select * from duly.job_events
where org_id = %(org_id)s and job_id = %(job_id)s and event_seq > %(after_seq)s
order by event_seq limit %(limit)s

-- name: read_last
-- Purpose: read the last events of a job, newest first. Index: the primary key, backwards.
select * from duly.job_events
where org_id = %(org_id)s and job_id = %(job_id)s
order by event_seq desc limit %(limit)s
