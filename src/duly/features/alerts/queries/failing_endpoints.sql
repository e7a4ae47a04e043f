-- Purpose: the webhooks of all orgs that have failed too often in a row, or were disabled for that. Endpoints are few.
select e.org_id, e.endpoint_id, e.url, e.failures, e.disabled_at is not null as given_up
from duly.webhook_endpoints e
where (e.disabled_at is null and e.failing_since is not null and e.shut_until is not null)
   or (e.disabled_at is not null and e.disabled_by = 'system:duly')
order by e.failing_since
limit %(limit)s
