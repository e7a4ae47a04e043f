-- Purpose: the open alerts of all orgs and of the installation, but for those of dead letters, which are shown by kind.
-- Index: alerts_to_watch.
select a.* from duly.alerts a
where a.kind <> 'dead_letter' and a.resolved_at is null
order by a.seen_at desc
limit %(limit)s
