-- Purpose: pass by everything that is settled, if nobody wants to be told of anything, as seen at the same moment.
-- Never beyond what was seen, as feed_tip explains. Locks: the mark, which the round holds already.
-- Index: event_log_by_commit.
update duly.relay_mark m
set commit_xid = tip.xid, job_id = '00000000-0000-0000-0000-000000000000', event_seq = 0, moved_at = duly.now()
from (
    select (e.commit_xid::text::bigint + 1)::text::xid8 as xid from duly.event_log e
    where e.commit_xid < pg_snapshot_xmin(pg_current_snapshot())
    order by e.commit_xid desc limit 1
) tip
where tip.xid > m.commit_xid
  and not exists (select from duly.webhook_endpoints e where e.disabled_at is null)
  and not exists (select from duly.subscriptions s)
