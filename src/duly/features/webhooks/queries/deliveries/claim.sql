-- Purpose: take messages that are due, from one endpoint after the other, and hold them for as long as a try may take.
-- The walk goes from endpoint to endpoint, by the first message of each: how many wait behind it makes no difference. It
-- begins after the endpoint where the last one ended, so that each has its turn. Endpoints share what is free; none has
-- more than its part in flight, and no org; of an org those go first that have the least. Of each job only the next
-- message is there to be taken: the others follow. One that fails has one in flight, and only so many of those get any,
-- whichever they are: else those that stall would have every place. One that failed too often gets a single message, once it is no longer shut: its row is then shut for others.
-- Fence: held_by. Until held_until a message is not due, so one whose holder has died is due again by itself.
-- Locks: the messages, skipping those that others take; endpoints on trial, too. Index: webhook_deliveries_due, then the
-- primary keys.
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
    where w.n < %(walk)s
), flight as materialized (
    select * from unnest(%(org_ids)s::uuid[], %(endpoint_ids)s::uuid[], %(flying)s::integer[]) f(org_id, endpoint_id, flying)
), ready as materialized (
    select w.n, w.org_id, w.endpoint_id, e.failures >= %(breaks)s as on_trial, e.failures > 0 as failing,
           case when e.failures > 0 then 1 else %(each)s end - coalesce(f.flying, 0) as room,
           %(each_org)s - coalesce(o.flying, 0) as org_room
    from walk w
    join duly.webhook_endpoints e on e.org_id = w.org_id and e.endpoint_id = w.endpoint_id
    left join flight f on f.org_id = w.org_id and f.endpoint_id = w.endpoint_id
    left join (select f.org_id, sum(f.flying) as flying from flight f group by f.org_id) o on o.org_id = w.org_id
    where w.due_at <= duly.now() and e.disabled_at is null and (e.shut_until is null or e.shut_until <= duly.now())
      and coalesce(f.flying, 0) < case when e.failures > 0 then 1 else %(each)s end
), open as materialized (
    select r.* from (
        select r.*, row_number() over (partition by r.org_id order by r.room desc, r.n) as nth,
               row_number() over (partition by r.failing order by random()) as chance
        from ready r
    ) r
    where r.nth <= r.org_room and (not r.failing or r.chance <= %(failing)s)
), trial as (
    update duly.webhook_endpoints e set shut_until = duly.now() + %(lease)s
    from (
        select t.org_id, t.endpoint_id from open o
        join duly.webhook_endpoints t on t.org_id = o.org_id and t.endpoint_id = o.endpoint_id
        where o.on_trial and t.shut_until <= duly.now()
        for no key update of t skip locked
    ) t
    where e.org_id = t.org_id and e.endpoint_id = t.endpoint_id
    returning e.endpoint_id
), turn as materialized (
    select o.*, case when o.on_trial then 1 else least(
               o.room, greatest(1, %(free)s / count(*) over ()),
               greatest(1, o.org_room / count(*) over (partition by o.org_id))) end as share
    from open o
    where not o.on_trial or o.endpoint_id in (select t.endpoint_id from trial t)
    order by o.n
), picked as materialized (
    select t.n, t.on_trial, t.failing, d.*
    from turn t
    cross join lateral (
        select d.org_id, d.endpoint_id, d.job_id, d.event_seq from duly.webhook_deliveries d
        where d.org_id = t.org_id and d.endpoint_id = t.endpoint_id and d.status = 'pending' and not d.follows
          and d.due_at <= duly.now()
        order by d.due_at limit t.share
        for update skip locked
    ) d
    limit %(free)s
), held as (
    update duly.webhook_deliveries d
    set held_by = %(holder)s, held_until = duly.now() + %(lease)s, due_at = duly.now() + %(lease)s
    from picked p
    where d.org_id = p.org_id and d.endpoint_id = p.endpoint_id and d.job_id = p.job_id and d.event_seq = p.event_seq
    returning p.n, p.on_trial, p.failing, d.org_id, d.endpoint_id, d.job_id, d.event_seq, d.event_type, d.data, d.notification_id, d.tries
)
select w.n as walked, w.org_id as walked_org, w.endpoint_id as walked_endpoint,
       h.n, h.on_trial, h.failing, h.org_id, h.endpoint_id, h.job_id, h.event_seq, h.event_type, h.data, h.notification_id, h.tries
from (select walk.n, walk.org_id, walk.endpoint_id from walk order by walk.n desc limit 1) w
left join held h on true
order by h.n
