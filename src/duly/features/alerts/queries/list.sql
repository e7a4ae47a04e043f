-- Purpose: a page of the session's org's alerts, the newest first. Index: alerts_by_time.
select a.* from duly.alerts a
where a.org_id = %(org_id)s and (a.fired_at, a.alert_id) < (%(before_at)s, %(before_id)s)
  and (%(kind)s::text is null or a.kind = %(kind)s)
  and (%(everything)s or a.resolved_at is null)
order by a.fired_at desc, a.alert_id desc
limit %(limit)s
