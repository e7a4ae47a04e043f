-- Purpose: lease due deliveries, endpoint by endpoint, for longer than an attempt may take.
-- The walk goes from endpoint to endpoint by the first delivery of each: the backlog behind it makes no difference. It starts
-- after the endpoint where the last walk ended, so that each gets its turn. Endpoints share the free slots; none exceeds
-- its share in flight, and no org does; within an org, endpoints with the fewest in flight come first. Of each job only the
-- next delivery can be claimed: the others follow it. A failing endpoint has one attempt in flight, and only a random
-- choice of failing endpoints gets one: else stalling endpoints would take every slot. After the pause of its circuit
-- breaker, an endpoint gets a single probe: its row keeps the breaker open for other processes.
-- Fence: held_by. Until held_until a delivery is not due, so one whose process has died becomes due again by itself.
-- Locks: the deliveries, skipping those that others lease; endpoints that get a probe, too. Index: webhook_deliveries_due,
-- then the primary keys.
with recursive walk(n, org_id, endpoint_id, due_at) as (
    select 0, %(after_org)s::uuid, %(after_endpoint)s::uuid, null::timestamptz
    union all
    select w.n + 1, d.org_id, d.endpoint_id, d.due_at
    from walk w
    cross join lateral (
        select d.org_id, d.endpoint_id, d.due_at from duly.webhook_deliveries d
        where d.status = 'pending' and not d.follows and (d.org_id, d.endpoint_id) > (w.org_id, w.endpoint_id)
        order by d.org_id, d.endpoint_id, d.due_at limit 1
    ) d
    where w.n < %(max_walk)s
), flight as materialized (
    select * from unnest(%(org_ids)s::uuid[], %(endpoint_ids)s::uuid[], %(in_flight)s::integer[]) f(org_id, endpoint_id, attempts)
), ready as materialized (
    select w.n, w.org_id, w.endpoint_id, e.failures >= %(breaker_threshold)s as is_probe, e.failures > 0 as failing,
           case when e.failures > 0 then 1 else %(per_endpoint)s end - coalesce(f.attempts, 0) as room,
           %(per_org)s - coalesce(o.attempts, 0) as org_room
    from walk w
    join duly.webhook_endpoints e on e.org_id = w.org_id and e.endpoint_id = w.endpoint_id
    left join flight f on f.org_id = w.org_id and f.endpoint_id = w.endpoint_id
    left join (select f.org_id, sum(f.attempts) as attempts from flight f group by f.org_id) o on o.org_id = w.org_id
    where w.due_at <= duly.now() and e.disabled_at is null and (e.shut_until is null or e.shut_until <= duly.now())
      and coalesce(f.attempts, 0) < case when e.failures > 0 then 1 else %(per_endpoint)s end
), allowed as materialized (
    select r.* from (
        select r.*, row_number() over (partition by r.org_id order by r.room desc, r.n) as nth,
               row_number() over (partition by r.failing order by random()) as chance
        from ready r
    ) r
    where r.nth <= r.org_room and (not r.failing or r.chance <= %(max_failing)s)
), probe as (
    update duly.webhook_endpoints e set shut_until = duly.now() + %(lease)s
    from (
        select t.org_id, t.endpoint_id from allowed o
        join duly.webhook_endpoints t on t.org_id = o.org_id and t.endpoint_id = o.endpoint_id
        where o.is_probe and t.shut_until <= duly.now()
        for no key update of t skip locked
    ) t
    where e.org_id = t.org_id and e.endpoint_id = t.endpoint_id
    returning e.endpoint_id
), shared as materialized (
    select o.*, case when o.is_probe then 1 else least(
               o.room, greatest(1, %(limit)s / count(*) over ()),
               greatest(1, o.org_room / count(*) over (partition by o.org_id))) end as share
    from allowed o
    where not o.is_probe or o.endpoint_id in (select t.endpoint_id from probe t)
    order by o.n
), picked as materialized (
    select t.n, t.is_probe, t.failing, d.*
    from shared t
    cross join lateral (
        select d.org_id, d.endpoint_id, d.job_id, d.event_seq from duly.webhook_deliveries d
        where d.org_id = t.org_id and d.endpoint_id = t.endpoint_id and d.status = 'pending' and not d.follows
          and d.due_at <= duly.now()
        order by d.due_at limit t.share
        for update skip locked
    ) d
    limit %(limit)s
), held as (
    update duly.webhook_deliveries d
    set held_by = %(holder)s, held_until = duly.now() + %(lease)s, due_at = duly.now() + %(lease)s
    from picked p
    where d.org_id = p.org_id and d.endpoint_id = p.endpoint_id and d.job_id = p.job_id and d.event_seq = p.event_seq
    returning p.n, p.is_probe, p.failing, d.org_id, d.endpoint_id, d.job_id, d.event_seq, d.event_type, d.data, d.tries
)
select w.n as walked, w.org_id as walked_org, w.endpoint_id as walked_endpoint,
       h.n, h.is_probe, h.failing, h.org_id, h.endpoint_id, h.job_id, h.event_seq, h.event_type, h.data, h.tries
from (select walk.n, walk.org_id, walk.endpoint_id from walk order by walk.n desc limit 1) w
left join held h on true
order by h.n
