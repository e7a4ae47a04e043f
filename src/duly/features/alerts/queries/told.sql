-- Purpose: note that alerts were told as they are now. Index: the primary key. Locks: their rows, which the caller holds.
update duly.alerts a set
    told_at = coalesce(a.told_at, duly.now()),
    told_end_at = case when a.resolved_at is not null then coalesce(a.told_end_at, duly.now()) end
where a.org_id = %(org_id)s and a.alert_id = any (%(alert_ids)s)
