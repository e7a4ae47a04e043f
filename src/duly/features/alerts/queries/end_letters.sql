-- Purpose: of the next open alerts of dead letters, those whose letter is resolved or gone are over: an older process
-- resolves letters without their alerts. The last that was looked at. Index: alerts_open; the primary keys.
with looked as materialized (
    select a.org_id, a.alert_id, a.target from duly.alerts a
    where a.resolved_at is null and a.kind = 'dead_letter'
      and (a.org_id, a.kind, a.target) > (%(org_id)s, 'dead_letter', %(target)s)
    order by a.org_id, a.kind, a.target
    limit %(limit)s
), over as (
    update duly.alerts a set resolved_at = coalesce(d.resolved_at, duly.now()), seen_at = duly.now()
    from looked l
    left join duly.dead_letters d on d.org_id = l.org_id and d.job_id = l.target::uuid
    where a.org_id = l.org_id and a.alert_id = l.alert_id and a.resolved_at is null
      and (d.job_id is null or d.resolved_at is not null)
)
select l.org_id, l.target from looked l order by l.org_id desc, l.target desc limit 1
