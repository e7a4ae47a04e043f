-- name: lock_mark
-- Purpose: read and lock the mark of the relay, if there is something to relay; no row if there is not, or if another
-- relay has the lock. A relay without work locks and writes nothing. Without listeners it is enough to skip to the tip
-- from time to time. Locks: the mark, until the end of the round. Index: event_log_by_commit.
select m.commit_xid::text::bigint as xid, m.job_id, m.event_seq,
       m.commit_xid > pg_snapshot_xmax(pg_current_snapshot()) as ahead,
       listeners.exist as has_listeners,
       -- A relay that hangs must not stop the others.
       set_config('idle_in_transaction_session_timeout', '30s', true)
from duly.relay_mark m
cross join lateral (
    select exists (select from duly.webhook_endpoints e where e.disabled_at is null)
        or exists (select from duly.subscriptions s) as exist
) listeners
where m.commit_xid > pg_snapshot_xmax(pg_current_snapshot())
   or (listeners.exist or m.moved_at < duly.now() - interval '10 seconds')
      and (exists (
          select from duly.event_log e
          where e.commit_xid >= m.commit_xid and not e.batched
            and (e.commit_xid, e.job_id, e.event_seq) > (m.commit_xid, m.job_id, m.event_seq)
            and e.commit_xid < pg_snapshot_xmin(pg_current_snapshot()))
        or exists (
          select from duly.batched_events e
          where e.commit_xid >= m.commit_xid
            and (e.commit_xid, e.job_id, e.event_seq) > (m.commit_xid, m.job_id, m.event_seq)
            and e.commit_xid < pg_snapshot_xmin(pg_current_snapshot())))
for update of m skip locked

-- name: scan
-- Purpose: scan the next events of all orgs in commit order, as feed/scan does: how far the scan came, and the jobs of orgs
-- with a listener that have events, with the first and the last of each.
-- Listeners are read in the same snapshot as the events: no event is skipped that committed after an endpoint was created.
-- The system org has no listeners of jobs. Index: event_log_by_commit, then the primary keys by org.
with scanned as materialized (
    (select e.org_id, e.commit_xid, e.job_id, e.event_seq
     from duly.event_log e
     where e.commit_xid >= %(xid)s::xid8
       and (e.commit_xid, e.job_id, e.event_seq) > (%(xid)s::xid8, %(job_id)s, %(event_seq)s)
       and e.commit_xid < (select pg_snapshot_xmin(pg_current_snapshot())) and not e.batched
     order by e.commit_xid, e.job_id, e.event_seq
     limit %(max_scanned)s)
    union all
    (select e.org_id, e.commit_xid, e.job_id, e.event_seq
     from duly.batched_events e
     where e.commit_xid >= %(xid)s::xid8
       and (e.commit_xid, e.job_id, e.event_seq) > (%(xid)s::xid8, %(job_id)s, %(event_seq)s)
       and e.commit_xid < (select pg_snapshot_xmin(pg_current_snapshot()))
     order by e.commit_xid, e.job_id, e.event_seq
     limit %(max_scanned)s)
    order by commit_xid, job_id, event_seq
    limit %(max_scanned)s
), last as (
    select s.commit_xid, s.job_id, s.event_seq from scanned s
    order by s.commit_xid desc, s.job_id desc, s.event_seq desc
    limit 1
), listening as materialized (
    select o.org_id from (select distinct s.org_id from scanned s) o
    where o.org_id <> %(system_org)s
      and (exists (select from duly.webhook_endpoints e where e.org_id = o.org_id and e.disabled_at is null)
           or exists (select from duly.subscriptions s where s.org_id = o.org_id))
), job as (
    select s.org_id, s.job_id, min(s.event_seq) as first_seq, max(s.event_seq) as last_seq
    from scanned s
    where s.org_id in (select g.org_id from listening g)
    group by s.org_id, s.job_id
)
select
    (select count(*) from scanned) as scanned,
    (select last.commit_xid::text::bigint from last) as xid,
    (select last.job_id from last) as job_id,
    (select last.event_seq from last) as event_seq,
    coalesce(array_agg(j.org_id order by j.org_id, j.job_id), '{}') as org_ids,
    coalesce(array_agg(j.job_id order by j.org_id, j.job_id), '{}') as job_ids,
    coalesce(array_agg(j.first_seq order by j.org_id, j.job_id), '{}') as first_seqs,
    coalesce(array_agg(j.last_seq order by j.org_id, j.job_id), '{}') as last_seqs
from job j

-- name: read_events
-- Purpose: read the events of these jobs that are not relayed yet, up to the last that the scan found of each. Of two
-- events of a job the earlier may have the later transaction, and lie beyond the scan: it is included, by going back from
-- the first that was found to one that is relayed. If that one is relayed, so are all before it.
-- System jobs have no listeners. Index: the primary keys; the limits keep the planner from any other.
with job as materialized (
    select k.org_id, k.job_id, k.first_seq, k.last_seq, r.job_type
    from unnest(%(org_ids)s::uuid[], %(job_ids)s::uuid[], %(first_seqs)s::integer[], %(last_seqs)s::integer[])
        as k(org_id, job_id, first_seq, last_seq)
    join duly.job_records r on r.org_id = k.org_id and r.job_id = k.job_id
    where r.job_type not like 'duly.%%'
)
select e.org_id, e.job_id, e.event_seq, e.event_type, j.job_type, e.commit_xid::text::bigint as commit_xid
from job j
cross join lateral (
    with recursive back as (
        select j.first_seq as event_seq
        union all
        select e.event_seq
        from back b
        cross join lateral (
            select l.* from duly.events_of(j.org_id, j.job_id) l where l.event_seq = b.event_seq - 1 limit 1
        ) e
        where (e.commit_xid, e.job_id, e.event_seq) > (%(xid)s::xid8, %(job_id)s, %(event_seq)s)
    )
    select min(b.event_seq) as event_seq from back b
) f
cross join lateral (
    select l.* from duly.events_of(j.org_id, j.job_id) l
    where l.event_seq between f.event_seq and j.last_seq offset 0
) e
where (e.commit_xid, e.job_id, e.event_seq) > (%(xid)s::xid8, %(job_id)s, %(event_seq)s)
order by e.org_id, e.job_id, e.event_seq

-- name: move_mark
-- Purpose: record that everything up to here is relayed. Locks: the mark, which the round holds already.
update duly.relay_mark
set commit_xid = %(xid)s::xid8, job_id = %(job_id)s, event_seq = %(event_seq)s, moved_at = duly.now()

-- name: skip_to_tip
-- Purpose: skip all committed events if there is no listener in the same snapshot.
-- Never beyond what was read, as feed/read_tip explains. Locks: the mark, which the round holds already.
-- Index: event_log_by_commit.
update duly.relay_mark m
set commit_xid = tip.xid, job_id = '00000000-0000-0000-0000-000000000000', event_seq = 0, moved_at = duly.now()
from (
    select (greatest(
        (select e.commit_xid from duly.event_log e
         where e.commit_xid < pg_snapshot_xmin(pg_current_snapshot())
         order by e.commit_xid desc limit 1),
        (select b.commit_xid from duly.event_batches b
         where b.commit_xid < pg_snapshot_xmin(pg_current_snapshot())
         order by b.commit_xid desc limit 1))::text::bigint + 1)::text::xid8 as xid
) tip
where tip.xid > m.commit_xid
  and not exists (select from duly.webhook_endpoints e where e.disabled_at is null)
  and not exists (select from duly.subscriptions s)
