-- Purpose: one alert for each dead letter that has none yet; of one that was resolved meanwhile, an alert that is over.
-- How many. Index: dead_letters_to_alert. Locks: their rows, skipping those that somebody is about to resolve.
-- Fence: alerts_of_dead_letters; a job dies once.
with found as materialized (
    select d.org_id, d.job_id from duly.dead_letters d
    where d.alerted_at is null
    order by d.dead_at
    limit %(limit)s
    for update skip locked
), marked as (
    update duly.dead_letters d set alerted_at = duly.now()
    from found f
    where d.org_id = f.org_id and d.job_id = f.job_id
    returning d.*
), made as (
    insert into duly.alerts (
        org_id, alert_id, kind, target, severity, summary, detail, fired_at, resolved_at)
    select m.org_id, duly.uuid7(), 'dead_letter', m.job_id::text, 'critical',
           m.job_type || ' has died: ' || m.error_code,
           jsonb_build_object('job_type', m.job_type, 'queue', m.queue, 'error_code', m.error_code,
                              'error_class', m.error_class, 'attempts', m.attempts, 'fingerprint', m.fingerprint),
           m.dead_at, m.resolved_at
    from marked m
    on conflict do nothing
)
select count(*) as added from found
