-- Purpose: forget alerts that were over so long ago; those of dead letters go with the letters.
-- Locks: the rows, skipping what others hold. Index: alerts_over.
delete from duly.alerts a using (
    select o.org_id, o.alert_id from duly.alerts o
    where o.kind <> 'dead_letter' and o.resolved_at < duly.now() - %(keep)s::interval
    limit %(limit)s for update skip locked
) old
where a.org_id = old.org_id and a.alert_id = old.alert_id
