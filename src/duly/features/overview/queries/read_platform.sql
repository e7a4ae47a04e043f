-- Purpose: count what the installation has beside its queues, each up to `limit` + 1: orgs, jobs that failed and that were
-- canceled since a time; the workers, and the size of the database.
-- Index: the primary key of the orgs; event_log_rare, which contains the last event of each such job; workers are few.
with workers as materialized (
    select count(*) as n, coalesce(sum(w.slots), 0) as slots from duly.workers w
    where w.stopped_at is null and w.lost_at is null and w.heartbeat_at + w.lease >= duly.now()
)
select duly.now() as looked_at,
       (select count(*) from (
            select from duly.organizations o where o.org_id <> %(system)s limit %(limit)s + 1) c) as orgs,
       (select count(*) from (
            select from duly.event_log e
            where e.event_type = 'job.failed' and e.occurred_at >= duly.now() - %(since)s limit %(limit)s + 1) c) as failed,
       (select count(*) from (
            select from duly.event_log e
            where e.event_type = 'job.canceled' and e.occurred_at >= duly.now() - %(since)s limit %(limit)s + 1) c) as canceled,
       (select w.n from workers w) as workers,
       (select w.slots from workers w) as slots,
       case when has_database_privilege(current_database(), 'connect') then pg_database_size(current_database()) end
           as database_bytes
