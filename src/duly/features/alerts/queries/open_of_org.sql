-- Purpose: the open alerts of the session's org, but for those of dead letters, which are shown by kind.
-- Index: alerts_open, before and after the dead letters, which may be many.
(select a.* from duly.alerts a
 where a.org_id = %(org_id)s and a.resolved_at is null and a.kind < 'dead_letter' order by a.kind, a.target limit %(limit)s)
union all
(select a.* from duly.alerts a
 where a.org_id = %(org_id)s and a.resolved_at is null and a.kind > 'dead_letter' order by a.kind, a.target limit %(limit)s)
