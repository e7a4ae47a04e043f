-- Purpose: the totals of the installation: living workers and their slots; open dead letters, pending messages and open
-- alerts, each counted up to `limit` + 1; and the age in seconds of the first event that is not relayed, and of the first
-- audit entry that is not sealed.
-- Index: workers are few; dead_letters_by_kind, webhook_deliveries_due, notifications_by_status, alerts_open;
-- event_log_by_commit and audit_entries_by_commit, from their marks on, as far as the transaction of the mark goes.
with workers as materialized (
    select count(*) as n, coalesce(sum(w.slots), 0) as slots from duly.workers w
    where w.stopped_at is null and w.lost_at is null and w.heartbeat_at + w.lease >= duly.now()
), alerts as (
    select a.kind, count(*) as n
    from (select a.kind from duly.alerts a where a.resolved_at is null limit %(limit)s + 1) a
    group by a.kind
)
select (select w.n from workers w) as workers,
       (select w.slots from workers w) as slots,
       (select count(*) from (
            select from duly.dead_letters d where d.resolution is null
            order by d.fingerprint limit %(limit)s + 1) c) as dead_letters,
       (select count(*) from (
            -- Only the next message of each job: the index does not contain those that follow it.
            select from duly.webhook_deliveries d where d.status = 'pending' and not d.follows limit %(limit)s + 1) c) as webhooks,
       (select count(*) from (
            select from duly.notifications n where n.delivery_status = 'pending' limit %(limit)s + 1) c) as notifications,
       (select coalesce(jsonb_object_agg(a.kind, a.n), '{}') from alerts a) as alerts,
       coalesce((
            select extract(epoch from duly.now() - first.occurred_at)
            from duly.relay_mark m
            cross join lateral (
                (select e.commit_xid, e.occurred_at from duly.event_log e
                 where e.commit_xid >= m.commit_xid and not e.batched
                   and (e.commit_xid, e.job_id, e.event_seq) > (m.commit_xid, m.job_id, m.event_seq)
                 order by e.commit_xid limit 1)
                union all
                (select e.commit_xid, e.occurred_at from duly.batched_events e
                 where e.commit_xid >= m.commit_xid
                   and (e.commit_xid, e.job_id, e.event_seq) > (m.commit_xid, m.job_id, m.event_seq)
                 order by e.commit_xid limit 1)
                order by commit_xid limit 1) first), 0)::float8 as relay_lag,
       coalesce((
            select extract(epoch from duly.now() - first.occurred_at)
            from duly.audit_mark m
            cross join lateral (
                select e.occurred_at from duly.audit_entries e
                where e.commit_xid >= m.commit_xid
                  and (e.commit_xid, e.occurred_at, e.entry_id) > (m.commit_xid, m.occurred_at, m.entry_id)
                order by e.commit_xid, e.occurred_at, e.entry_id limit 1) first), 0)::float8 as audit_lag
