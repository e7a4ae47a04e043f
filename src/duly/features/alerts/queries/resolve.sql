-- Purpose: alerts that nobody has seen for a while are over. Index: alerts_to_watch.
update duly.alerts a set resolved_at = duly.now()
where a.kind <> 'dead_letter' and a.resolved_at is null and a.seen_at < duly.now() - %(calm)s::interval
returning a.*
