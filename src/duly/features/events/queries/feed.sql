-- name: scan
-- Purpose: find the next events of an org in commit order by their keys, and how far the scan came.
-- Index: event_log_by_commit, event_batches_by_commit. Reads up to `max_scanned` events of all orgs, so a page costs the same in every log.
-- Only before the oldest open transaction: later events may still be overtaken by one that commits late.
with clock as materialized (
    select pg_snapshot_xmin(s) as settled, pg_snapshot_xmax(s) as next_xid from pg_current_snapshot() s
), scanned as materialized (
    (select e.org_id, e.commit_xid, e.job_id, e.event_seq
     from duly.event_log e
     where e.commit_xid >= %(xid)s::xid8
       and (e.commit_xid, e.job_id, e.event_seq) > (%(xid)s::xid8, %(job_id)s, %(event_seq)s)
       and e.commit_xid < (select c.settled from clock c) and not e.batched
     order by e.commit_xid, e.job_id, e.event_seq
     limit %(max_scanned)s)
    union all
    (select e.org_id, e.commit_xid, e.job_id, e.event_seq
     from duly.batched_events e
     where e.commit_xid >= %(xid)s::xid8
       and (e.commit_xid, e.job_id, e.event_seq) > (%(xid)s::xid8, %(job_id)s, %(event_seq)s)
       and e.commit_xid < (select c.settled from clock c)
     order by e.commit_xid, e.job_id, e.event_seq
     limit %(max_scanned)s)
    order by commit_xid, job_id, event_seq
    limit %(max_scanned)s
), found as (
    select s.commit_xid, s.job_id, s.event_seq from scanned s
    where s.org_id = %(org_id)s
    order by s.commit_xid, s.job_id, s.event_seq
    limit %(limit)s
), last as (
    select s.commit_xid, s.job_id, s.event_seq from scanned s
    order by s.commit_xid desc, s.job_id desc, s.event_seq desc
    limit 1
)
select
    %(xid)s::xid8 > c.next_xid as unknown,
    exists (
        select from duly.event_drops d where d.drop_id > %(drops)s and d.dropped_through >= %(xid)s::xid8) as lost,
    (select coalesce(max(d.drop_id), 0) from duly.event_drops d) as drops,
    (select count(*) from scanned) as scanned,
    (select coalesce(array_agg(f.commit_xid::text::bigint order by f.commit_xid, f.job_id, f.event_seq), '{}')
     from found f) as xids,
    (select coalesce(array_agg(f.job_id order by f.commit_xid, f.job_id, f.event_seq), '{}') from found f) as job_ids,
    (select coalesce(array_agg(f.event_seq order by f.commit_xid, f.job_id, f.event_seq), '{}') from found f) as seqs,
    (select last.commit_xid::text::bigint from last) as last_xid,
    (select last.job_id from last) as last_job_id,
    (select last.event_seq from last) as last_event_seq
from clock c

-- name: read
-- Purpose: read events of the session's org by their keys, in the order of the keys. Index: the primary keys.
select e.*,
       (select r.subject_id from duly.job_records r where r.org_id = %(org_id)s and r.job_id = e.job_id) as subject_id
from unnest(%(job_ids)s::uuid[], %(seqs)s::integer[]) with ordinality k(job_id, event_seq, n)
cross join lateral (
    select v.* from duly.job_events v
    where v.org_id = %(org_id)s and v.job_id = k.job_id and v.event_seq = k.event_seq
) e
order by k.n

-- name: read_tip
-- Purpose: read the current end of the feed: after the last event before the oldest open transaction, and the last drop.
-- Not the oldest open transaction itself: its id may be assigned again after a crash. Index: event_log_by_commit.
select coalesce(greatest(
           (select e.commit_xid from duly.event_log e
            where e.commit_xid < pg_snapshot_xmin(pg_current_snapshot())
            order by e.commit_xid desc limit 1),
           (select b.commit_xid from duly.event_batches b
            where b.commit_xid < pg_snapshot_xmin(pg_current_snapshot())
            order by b.commit_xid desc limit 1))::text::bigint + 1, 0) as xid,
       (select coalesce(max(d.drop_id), 0) from duly.event_drops d) as drops
