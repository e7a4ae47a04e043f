-- Purpose: write down the messages that these events are to endpoints. One that was written before stays as it is.
-- A wild card means every kind of event but progress, which is told of only where it is asked for by its name.
-- A message follows if the one before it, of the same job, is still to be sent. That is asked under a lock: whoever ends
-- the other has either seen this one, or is waited for. Locks: the endpoints against removal; then the messages before,
-- in the order of their keys. Index: the primary keys.
with event as materialized (
    select * from unnest(
        %(org_ids)s::uuid[], %(job_ids)s::uuid[], %(seqs)s::integer[], %(event_types)s::text[], %(job_types)s::text[],
        %(xids)s::text[]) as f(org_id, job_id, event_seq, event_type, job_type, xid)
), kept as materialized (
    select e.org_id, e.endpoint_id, e.since_xid, e.event_types, e.job_types
    from (select distinct f.org_id from event f) o
    join duly.webhook_endpoints e on e.org_id = o.org_id
    where e.disabled_at is null
    order by e.org_id, e.endpoint_id
    for key share of e
), meant as materialized (
    select f.org_id, e.endpoint_id, f.job_id, f.event_seq, f.event_type
    from event f
    join kept e on e.org_id = f.org_id
    where f.xid::xid8 >= e.since_xid
      and (f.event_type = any (e.event_types)
           or f.event_type <> 'job.progressed' and e.event_types && array['*', 'job.*'])
      and (e.job_types is null or f.job_type = any (e.job_types))
), fresh as materialized (
    select m.*, row_number() over (partition by m.org_id, m.endpoint_id, m.job_id order by m.event_seq) as nth
    from meant m
    where not exists (
        select from duly.webhook_deliveries d
        where d.org_id = m.org_id and d.endpoint_id = m.endpoint_id and d.job_id = m.job_id and d.event_seq = m.event_seq)
    order by m.org_id, m.endpoint_id, m.job_id, m.event_seq
)
insert into duly.webhook_deliveries (org_id, endpoint_id, job_id, event_seq, event_type, due_at, follows)
select f.org_id, f.endpoint_id, f.job_id, f.event_seq, f.event_type, duly.now(), f.nth > 1 or coalesce(b.waits, false)
from fresh f
left join lateral (
    select d.status = 'pending' as waits from duly.webhook_deliveries d
    where f.nth = 1 and d.org_id = f.org_id and d.endpoint_id = f.endpoint_id and d.job_id = f.job_id
      and d.event_seq < f.event_seq
    order by d.event_seq desc limit 1
    for share
) b on true
on conflict do nothing
