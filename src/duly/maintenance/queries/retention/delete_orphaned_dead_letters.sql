-- Purpose: delete the dead letters of deleted jobs, and their alerts. An unresolved one leaves an entry in the audit log.
-- Locks: the rows, skipping locked ones. Index: the primary keys, alerts_of_dead_letters.
with old as materialized (
    select d.org_id, d.job_id from duly.dead_letters d
    where d.job_id < duly.uuid7_floor(duly.now() - %(keep)s::interval)
      and not exists (select from duly.job_records r where r.org_id = d.org_id and r.job_id = d.job_id)
    limit %(limit)s for update skip locked
), gone as (
    delete from duly.dead_letters d using old o where d.org_id = o.org_id and d.job_id = o.job_id
    returning d.*
), forgotten as (
    delete from duly.alerts a using gone g
    where a.org_id = g.org_id and a.kind = 'dead_letter' and a.target = g.job_id::text
), noted as (
    insert into duly.audit_entries (
        org_id, entry_id, occurred_at, actor_type, actor_id, action, target_type, target_id, reason, detail)
    select g.org_id, duly.uuid7(), duly.now(), 'system', 'retention', 'dead_letter.expired', 'job', g.job_id::text,
           'its job was older than the retention',
           jsonb_build_object('job_type', g.job_type, 'error_code', g.error_code, 'dead_at', g.dead_at)
    from gone g where g.resolution is null
)
select count(*) from gone
