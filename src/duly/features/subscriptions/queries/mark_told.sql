-- Purpose: note that there was something to tell. Index: the primary key. In its order: two who mark do not cross.
update duly.subscriptions s set told_at = duly.now()
from (
    select k.org_id, k.subscription_id
    from unnest(%(org_ids)s::uuid[], %(subscription_ids)s::uuid[]) as k(org_id, subscription_id)
    join duly.subscriptions x on x.org_id = k.org_id and x.subscription_id = k.subscription_id
    order by x.org_id, x.subscription_id
    for update of x
) k
where s.org_id = k.org_id and s.subscription_id = k.subscription_id
