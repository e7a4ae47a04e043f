-- Purpose: where the feed ends now: after the last event before which no transaction is open, and after the last drop.
-- Not the oldest open transaction itself: its number may be given again after a crash. Index: event_log_by_commit.
select coalesce(
           (select e.commit_xid::text::bigint + 1 from duly.event_log e
            where e.commit_xid < pg_snapshot_xmin(pg_current_snapshot())
            order by e.commit_xid desc limit 1), 0) as follows,
       (select coalesce(max(d.drop_id), 0) from duly.event_drops d) as drops
