-- Purpose: how far each of these jobs is: the number of its last event, and its status. Index: the primary keys.
-- A job without a state waits, and has its first event only.
select k.place, coalesce(s.event_seq, 1), coalesce(s.status, 'queued')
from unnest(%(org_ids)s::uuid[], %(job_ids)s::uuid[]) with ordinality k(org_id, job_id, place)
left join lateral (
    select s.event_seq, s.status from duly.job_states s where s.org_id = k.org_id and s.job_id = k.job_id limit 1) s on true
