-- Purpose: the alerts of an org whose beginning or end nobody was told of. Index: alerts_to_tell. Locks: their rows.
select a.* from duly.alerts a
where a.org_id = %(org_id)s and a.kind <> 'dead_letter'
  and (a.told_at is null or (a.resolved_at is not null and a.told_end_at is null))
order by a.fired_at
limit %(limit)s
for update
