-- Purpose: send messages again, at once and with as many tries as a new one has. Under their locks. Index: the primary key.
update duly.webhook_deliveries d set
    status = 'pending', tries = 0, due_at = duly.now(), ended_at = null, held_by = null, held_until = null,
    follows = k.follows
from unnest(%(job_ids)s::uuid[], %(seqs)s::integer[], %(follows)s::boolean[]) as k(job_id, event_seq, follows)
where d.org_id = %(org_id)s and d.endpoint_id = %(endpoint_id)s and d.job_id = k.job_id and d.event_seq = k.event_seq
