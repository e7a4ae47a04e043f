-- Purpose: the endpoints of an org in the order in which they were made. Index: the primary keys.
-- Their secrets are not read: only until when an old one still signs.
select e.org_id, e.endpoint_id, e.url, e.description, e.event_types, e.job_types, e.created_by, e.created_at, e.updated_at,
       e.disabled_at, e.disabled_by, e.disable_reason, e.failures, e.failing_since, e.shut_until,
       (select max(s.expires_at) from duly.webhook_secrets s
        where s.org_id = e.org_id and s.endpoint_id = e.endpoint_id and s.expires_at > duly.now()) as old_secret_until
from duly.webhook_endpoints e
where e.org_id = %(org_id)s and e.endpoint_id > %(after)s
order by e.endpoint_id
limit %(limit)s
