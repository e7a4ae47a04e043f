-- Purpose: fail pending notifications that have lost their delivery: the job has ended otherwise or is gone, or the
-- endpoint or its delivery is gone. Transition: pending -> failed.
-- Index: notifications_by_status, then the primary keys. Locks: the rows, skipping locked ones.
with lost as materialized (
    select n.org_id, n.notification_id, coalesce(t.error_message, t.cancel_reason) as why
    from duly.notifications n
    left join lateral (
        select x.job_id, x.finished_at, x.error_message, x.cancel_reason
        from duly.state_of(n.org_id, n.delivery_job_id) x where n.channel <> 'webhook' limit 1) t on true
    where n.delivery_status = 'pending' and n.delivery_job_id is not null
      and case when n.channel = 'webhook' then not exists (
                   select from duly.webhook_endpoints e
                   join duly.webhook_deliveries d on d.org_id = e.org_id and d.endpoint_id = e.endpoint_id
                   where e.org_id = n.org_id and e.endpoint_id = n.recipient::uuid and d.job_id = n.delivery_job_id)
               else t.finished_at is not null or (t.job_id is null and not exists (
                   select from duly.job_records r where r.org_id = n.org_id and r.job_id = n.delivery_job_id)) end
    limit %(limit)s
    for update of n skip locked
)
update duly.notifications n set
    delivery_status = 'failed', last_error = coalesce(l.why, n.last_error, 'the delivery was deleted')
from lost l
where n.org_id = l.org_id and n.notification_id = l.notification_id
returning n.notification_id
