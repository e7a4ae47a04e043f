-- Purpose: give back what was held and is not tried any more. Fence: held_by. Locks: the messages, in the order
-- of their keys. Index: the primary key.
with held as materialized (
    select d.org_id, d.endpoint_id, d.job_id, d.event_seq
    from unnest(%(org_ids)s::uuid[], %(endpoint_ids)s::uuid[], %(job_ids)s::uuid[], %(seqs)s::integer[])
        as k(org_id, endpoint_id, job_id, event_seq)
    join duly.webhook_deliveries d
        on d.org_id = k.org_id and d.endpoint_id = k.endpoint_id and d.job_id = k.job_id and d.event_seq = k.event_seq
    where d.held_by = %(holder)s
    order by d.org_id, d.endpoint_id, d.job_id, d.event_seq
    for update of d
)
update duly.webhook_deliveries d set held_by = null, held_until = null, due_at = duly.now()
from held h
where d.org_id = h.org_id and d.endpoint_id = h.endpoint_id and d.job_id = h.job_id and d.event_seq = h.event_seq
