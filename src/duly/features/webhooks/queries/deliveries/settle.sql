-- Purpose: note what became of some tries. What is not returned was taken by another meanwhile, or sent again by hand.
-- Fence: held_by. Locks: the messages, in the order of their keys. Index: the primary key.
with tried as materialized (
    select * from json_to_recordset(%(tries)s::json) as t(
        org_id uuid, endpoint_id uuid, job_id uuid, event_seq integer, status text, wait double precision, entry jsonb)
), held as materialized (
    select t.*
    from tried t
    join duly.webhook_deliveries d
        on d.org_id = t.org_id and d.endpoint_id = t.endpoint_id and d.job_id = t.job_id and d.event_seq = t.event_seq
    where d.held_by = %(holder)s
    order by t.org_id, t.endpoint_id, t.job_id, t.event_seq
    for update of d
)
update duly.webhook_deliveries d set
    status = h.status,
    tries = d.tries + 1,
    try_log = (
        select jsonb_agg(l.entry order by l.n) from jsonb_array_elements(d.try_log || h.entry) with ordinality l(entry, n)
        where l.n > jsonb_array_length(d.try_log) + 1 - %(kept)s),
    due_at = duly.now() + make_interval(secs => coalesce(h.wait, 0)),
    held_by = null,
    held_until = null,
    ended_at = case when h.status <> 'pending' then duly.now() end
from held h
where d.org_id = h.org_id and d.endpoint_id = h.endpoint_id and d.job_id = h.job_id and d.event_seq = h.event_seq
returning d.org_id, d.endpoint_id, d.job_id, d.event_seq, d.status, d.notification_id, d.tries, h.entry ->> 'error' as error
