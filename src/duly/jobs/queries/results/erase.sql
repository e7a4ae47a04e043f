-- Purpose: erase the results of ended jobs about a subject: snapshots now, artifacts with the next clean-up.
-- Index: job_records_by_subject, then the primary keys.
with about as materialized (
    select r.org_id, r.job_id from duly.job_records r
    cross join lateral (
        select from duly.state_of(r.org_id, r.job_id) s where s.status in ('completed', 'failed', 'canceled') limit 1) s
    where r.org_id = %(org_id)s and r.subject_id = %(subject_id)s
), gone as (
    select e.payload_ref from duly.erase_snapshots(%(org_id)s, array(select a.job_id from about a)) e
), files as (
    update duly.artifacts f set expires_at = duly.now() from about a
    where f.org_id = a.org_id and f.job_id = a.job_id and (f.expires_at is null or f.expires_at > duly.now())
    returning f.artifact_id
), released as (
    insert into duly.released_blobs (blob_ref)
    select distinct g.payload_ref from gone g where g.payload_ref like 'blob:' || %(org_id)s::text || '/%%'
    on conflict (blob_ref) do update set released_at = excluded.released_at
)
select (select count(*) from gone) as snapshots, (select count(*) from files) as files
