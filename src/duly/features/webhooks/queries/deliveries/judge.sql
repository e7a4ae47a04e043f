-- Purpose: the breaker: what some tries say about their endpoints; and which of those have failed for too long, or are gone.
-- Failures count up to the number that shuts an endpoint; what was in flight then tells nothing new. After that only the
-- one on trial counts, and each such failure doubles the time. One success makes it whole.
-- Locks: the endpoints, in the order of their keys. Index: the primary key.
with told as materialized (
    select * from json_to_recordset(%(endpoints)s::json) as t(
        org_id uuid, endpoint_id uuid, succeeded boolean, failed integer, trial_failed boolean, gone boolean)
), known as materialized (
    select t.*, f.failures as before,
           case when t.succeeded then 0
                when t.trial_failed then f.failures + 1
                else greatest(f.failures, least(f.failures + t.failed, %(breaks)s)) end as failures
    from told t
    join duly.webhook_endpoints f on f.org_id = t.org_id and f.endpoint_id = t.endpoint_id
    where not t.succeeded or t.gone or f.failures > 0 or f.failing_since is not null
    order by t.org_id, t.endpoint_id
    for no key update of f
)
update duly.webhook_endpoints e set
    failures = k.failures,
    failing_since = case when not k.succeeded then coalesce(e.failing_since, duly.now()) end,
    shut_until = case
        when k.failures < %(breaks)s then null
        when k.failures > k.before then duly.now() + least(
            %(shut)s::interval * power(2, least(k.failures - %(breaks)s, 20)), %(shut_most)s::interval)
        else e.shut_until end
from known k
where e.org_id = k.org_id and e.endpoint_id = k.endpoint_id
returning e.org_id, e.endpoint_id, k.gone, k.failures > k.before and k.failures >= %(breaks)s as shut,
          e.disabled_at is null and (k.gone or e.failing_since <= duly.now() - %(patience)s::interval) as given_up
