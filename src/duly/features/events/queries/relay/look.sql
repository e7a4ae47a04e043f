-- Purpose: the next events of all orgs in the order of their transactions, as feed_look has them: how far the look came,
-- and of which jobs there are events that somebody may want to be told of, with the first and the last of each.
-- Whether an org wants to be told is seen at the same moment as the events: none is passed by that committed after an
-- endpoint. Duly's own org is never told of jobs. Index: event_log_by_commit, then the primary keys by org.
with look as materialized (
    select e.org_id, e.commit_xid, e.job_id, e.event_seq
    from duly.event_log e
    where e.commit_xid >= %(xid)s::xid8
      and (e.commit_xid, e.job_id, e.event_seq) > (%(xid)s::xid8, %(job_id)s, %(event_seq)s)
      and e.commit_xid < (select pg_snapshot_xmin(pg_current_snapshot()))
    order by e.commit_xid, e.job_id, e.event_seq
    limit %(look)s
), far as (
    select l.commit_xid, l.job_id, l.event_seq from look l
    order by l.commit_xid desc, l.job_id desc, l.event_seq desc
    limit 1
), listening as materialized (
    select o.org_id from (select distinct l.org_id from look l) o
    where o.org_id <> %(own)s
      and (exists (select from duly.webhook_endpoints e where e.org_id = o.org_id and e.disabled_at is null)
           or exists (select from duly.subscriptions s where s.org_id = o.org_id))
), job as (
    select l.org_id, l.job_id, min(l.event_seq) as first_seq, max(l.event_seq) as last_seq
    from look l
    where l.org_id in (select g.org_id from listening g)
    group by l.org_id, l.job_id
)
select
    (select count(*) from look) as looked,
    (select far.commit_xid::text::bigint from far) as xid,
    (select far.job_id from far) as job_id,
    (select far.event_seq from far) as event_seq,
    coalesce(array_agg(j.org_id order by j.org_id, j.job_id), '{}') as org_ids,
    coalesce(array_agg(j.job_id order by j.org_id, j.job_id), '{}') as job_ids,
    coalesce(array_agg(j.first_seq order by j.org_id, j.job_id), '{}') as first_seqs,
    coalesce(array_agg(j.last_seq order by j.org_id, j.job_id), '{}') as last_seqs
from job j
