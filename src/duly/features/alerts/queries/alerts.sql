-- name: failing_endpoints
-- Purpose: the webhooks of all orgs that have failed too often in a row, or were disabled for that. Endpoints are few.
select e.org_id, e.endpoint_id, e.url, e.failures, e.disabled_at is not null as given_up
from duly.webhook_endpoints e
where (e.disabled_at is null and e.failing_since is not null and e.shut_until is not null)
   or (e.disabled_at is not null and e.disabled_by = 'system:duly')
order by e.failing_since
limit %(limit)s

-- name: list
-- Purpose: a page of the session's org's alerts, the newest first. Index: alerts_by_time.
select a.* from duly.alerts a
where a.org_id = %(org_id)s and (a.fired_at, a.alert_id) < (%(before_at)s, %(before_id)s)
  and (%(kind)s::text is null or a.kind = %(kind)s)
  and (%(everything)s or a.resolved_at is null)
order by a.fired_at desc, a.alert_id desc
limit %(limit)s

-- name: open
-- Purpose: the open alerts of all orgs and of the installation, but for those of dead letters, which are shown by kind.
-- Index: alerts_to_watch.
select a.* from duly.alerts a
where a.kind <> 'dead_letter' and a.resolved_at is null
order by a.seen_at desc
limit %(limit)s

-- name: open_of_org
-- Purpose: the open alerts of the session's org, but for those of dead letters, which are shown by kind.
-- Index: alerts_open, before and after the dead letters, which may be many.
(select a.* from duly.alerts a
 where a.org_id = %(org_id)s and a.resolved_at is null and a.kind < 'dead_letter' order by a.kind, a.target limit %(limit)s)
union all
(select a.* from duly.alerts a
 where a.org_id = %(org_id)s and a.resolved_at is null and a.kind > 'dead_letter' order by a.kind, a.target limit %(limit)s)

-- name: resolve
-- Purpose: alerts that nobody has seen for a while are over. Index: alerts_to_watch.
update duly.alerts a set resolved_at = duly.now()
where a.kind <> 'dead_letter' and a.resolved_at is null and a.seen_at < duly.now() - %(calm)s::interval
returning a.*

-- name: take_turn
-- Purpose: be the one who looks, until the end of the transaction; false if somebody else is.
-- Locks: an advisory one of the transaction.
select pg_try_advisory_xact_lock(hashtextextended('duly.alerts', 0)) as mine

-- name: to_tell
-- Purpose: the alerts of an org whose beginning or end nobody was told of. Index: alerts_to_tell. Locks: their rows.
select a.* from duly.alerts a
where a.org_id = %(org_id)s and a.kind <> 'dead_letter'
  and (a.told_at is null or (a.resolved_at is not null and a.told_end_at is null))
order by a.fired_at
limit %(limit)s
for update

-- name: told
-- Purpose: note that alerts were told as they are now. Index: the primary key. Locks: their rows, which the caller holds.
update duly.alerts a set
    told_at = coalesce(a.told_at, duly.now()),
    told_end_at = case when a.resolved_at is not null then coalesce(a.told_end_at, duly.now()) end
where a.org_id = %(org_id)s and a.alert_id = any (%(alert_ids)s)

-- name: workers
-- Purpose: how many workers live, and how long ago the last one was heard of. Workers are few.
select count(*) filter (
           where w.stopped_at is null and w.lost_at is null and w.heartbeat_at + w.lease >= duly.now()) as workers,
       duly.now() - max(greatest(w.heartbeat_at, w.stopped_at)) as silence
from duly.workers w
