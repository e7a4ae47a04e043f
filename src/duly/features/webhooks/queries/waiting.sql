-- Purpose: how many messages to endpoints are to be sent next, counted so far, and when the first of them is due. Those
-- that follow another of the same job are not counted. Index: webhook_deliveries_due.
select k.endpoint_id, count(w.due_at) as waiting, min(w.due_at) as next_at
from unnest(%(endpoint_ids)s::uuid[]) k(endpoint_id)
cross join lateral (
    select d.due_at from duly.webhook_deliveries d
    where d.org_id = %(org_id)s and d.endpoint_id = k.endpoint_id and d.status = 'pending' and not d.follows
    order by d.due_at
    limit %(most)s
) w
group by k.endpoint_id
