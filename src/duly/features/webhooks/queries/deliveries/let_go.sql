-- Purpose: let those go that waited for these messages, each the next of its job. After what ended them, by a statement of
-- its own: so it sees every message that was written before that. Locks: their rows,
-- in the order of their keys. Index: the primary key.
with next as materialized (
    select d.org_id, d.endpoint_id, d.job_id, d.event_seq
    from unnest(%(org_ids)s::uuid[], %(endpoint_ids)s::uuid[], %(job_ids)s::uuid[], %(seqs)s::integer[])
        as k(org_id, endpoint_id, job_id, event_seq)
    cross join lateral (
        select n.event_seq from duly.webhook_deliveries n
        where n.org_id = k.org_id and n.endpoint_id = k.endpoint_id and n.job_id = k.job_id and n.event_seq > k.event_seq
        order by n.event_seq limit 1
    ) n
    join duly.webhook_deliveries d
        on d.org_id = k.org_id and d.endpoint_id = k.endpoint_id and d.job_id = k.job_id and d.event_seq = n.event_seq
    where d.status = 'pending' and d.follows
    order by d.org_id, d.endpoint_id, d.job_id, d.event_seq
    for update of d
)
update duly.webhook_deliveries d set follows = false, due_at = duly.now()
from next n
where d.org_id = n.org_id and d.endpoint_id = n.endpoint_id and d.job_id = n.job_id and d.event_seq = n.event_seq
