-- Purpose: the next events of an org in the order of their transactions, by their keys; and how far the look came.
-- Index: event_log_by_commit. Reads `look` entries of all orgs at most, so a page costs the same in every log.
-- Only transactions before which none is open: later ones may still be overtaken by an earlier one that commits late.
with clock as materialized (
    select pg_snapshot_xmin(s) as settled, pg_snapshot_xmax(s) as next_xid from pg_current_snapshot() s
), look as materialized (
    select e.org_id, e.commit_xid, e.job_id, e.event_seq
    from duly.event_log e
    where e.commit_xid >= %(xid)s::xid8
      and (e.commit_xid, e.job_id, e.event_seq) > (%(xid)s::xid8, %(job_id)s, %(event_seq)s)
      and e.commit_xid < (select c.settled from clock c)
    order by e.commit_xid, e.job_id, e.event_seq
    limit %(look)s
), found as (
    select l.commit_xid, l.job_id, l.event_seq from look l
    where l.org_id = %(org_id)s
    order by l.commit_xid, l.job_id, l.event_seq
    limit %(limit)s
), far as (
    select l.commit_xid, l.job_id, l.event_seq from look l
    order by l.commit_xid desc, l.job_id desc, l.event_seq desc
    limit 1
)
select
    %(xid)s::xid8 > c.next_xid as unknown,
    exists (
        select from duly.event_drops d where d.drop_id > %(drops)s and d.dropped_through >= %(xid)s::xid8) as lost,
    (select coalesce(max(d.drop_id), 0) from duly.event_drops d) as drops,
    (select count(*) from look) as looked,
    (select coalesce(array_agg(f.commit_xid::text::bigint order by f.commit_xid, f.job_id, f.event_seq), '{}')
     from found f) as xids,
    (select coalesce(array_agg(f.job_id order by f.commit_xid, f.job_id, f.event_seq), '{}') from found f) as job_ids,
    (select coalesce(array_agg(f.event_seq order by f.commit_xid, f.job_id, f.event_seq), '{}') from found f) as seqs,
    (select far.commit_xid::text::bigint from far) as last_xid,
    (select far.job_id from far) as last_job_id,
    (select far.event_seq from far) as last_event_seq
from clock c
