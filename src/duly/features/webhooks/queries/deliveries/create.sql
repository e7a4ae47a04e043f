-- Purpose: create the deliveries of events to the endpoints that select them. An existing one stays as it is.
-- A wildcard selects every event type but job.progressed, which must be named.
-- A delivery follows if the previous one of the same job is pending. That is read under a lock: a process that ends the
-- previous one either sees this delivery, or this statement waits for it. Locks: the endpoints against deletion; then the
-- previous deliveries, in the order of their keys. Index: the primary keys.
with event as materialized (
    select * from unnest(
        %(org_ids)s::uuid[], %(job_ids)s::uuid[], %(seqs)s::integer[], %(event_types)s::text[], %(job_types)s::text[],
        %(xids)s::text[]) as f(org_id, job_id, event_seq, event_type, job_type, xid)
), endpoint as materialized (
    select e.org_id, e.endpoint_id, e.since_xid, e.event_types, e.job_types
    from (select distinct f.org_id from event f) o
    join duly.webhook_endpoints e on e.org_id = o.org_id
    where e.disabled_at is null
    order by e.org_id, e.endpoint_id
    for key share of e
), selected as materialized (
    select f.org_id, e.endpoint_id, f.job_id, f.event_seq, f.event_type
    from event f
    join endpoint e on e.org_id = f.org_id
    where f.xid::xid8 >= e.since_xid
      and (f.event_type = any (e.event_types)
           or f.event_type <> 'job.progressed' and e.event_types && array['*', 'job.*'])
      and (e.job_types is null or f.job_type = any (e.job_types))
), fresh as materialized (
    select m.*, row_number() over (partition by m.org_id, m.endpoint_id, m.job_id order by m.event_seq) as nth
    from selected m
    where not exists (
        select from duly.webhook_deliveries d
        where d.org_id = m.org_id and d.endpoint_id = m.endpoint_id and d.job_id = m.job_id and d.event_seq = m.event_seq)
    order by m.org_id, m.endpoint_id, m.job_id, m.event_seq
)
insert into duly.webhook_deliveries (org_id, endpoint_id, job_id, event_seq, event_type, due_at, follows)
select f.org_id, f.endpoint_id, f.job_id, f.event_seq, f.event_type, duly.now(), f.nth > 1 or coalesce(p.pending, false)
from fresh f
left join lateral (
    select d.status = 'pending' as pending from duly.webhook_deliveries d
    where f.nth = 1 and d.org_id = f.org_id and d.endpoint_id = f.endpoint_id and d.job_id = f.job_id
      and d.event_seq < f.event_seq
    order by d.event_seq desc limit 1
    for share
) p on true
on conflict do nothing
