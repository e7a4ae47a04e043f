-- Purpose: where the relay goes on, if there is something to do; no row if there is not, or if somebody else is at it.
-- Whoever finds nothing to do has locked and written nothing. Where nobody wants to be told of anything, it is enough to
-- follow from time to time. Locks: the mark, until the end of the round. Index: event_log_by_commit.
select m.commit_xid::text::bigint as xid, m.job_id, m.event_seq,
       m.commit_xid > pg_snapshot_xmax(pg_current_snapshot()) as ahead,
       wanted.by_anybody as wanted,
       -- Should the holder hang, nobody else could go on.
       set_config('idle_in_transaction_session_timeout', '30s', true)
from duly.relay_mark m
cross join lateral (
    select exists (select from duly.webhook_endpoints e where e.disabled_at is null)
        or exists (select from duly.subscriptions s) as by_anybody
) wanted
where m.commit_xid > pg_snapshot_xmax(pg_current_snapshot())
   or (wanted.by_anybody or m.moved_at < duly.now() - interval '10 seconds')
      and exists (
          select from duly.event_log e
          where e.commit_xid >= m.commit_xid
            and (e.commit_xid, e.job_id, e.event_seq) > (m.commit_xid, m.job_id, m.event_seq)
            and e.commit_xid < pg_snapshot_xmin(pg_current_snapshot()))
for update of m skip locked
