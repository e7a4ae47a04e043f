-- Purpose: where the feed ends now: before the first transaction that may still be open, and after the last drop.
select pg_snapshot_xmin(pg_current_snapshot())::text::bigint as settled,
       (select coalesce(max(d.drop_id), 0) from duly.event_drops d) as drops
