-- Purpose: remove expired artifacts; their blobs are released, and removed when nothing else names them.
-- Locks: the rows, skipping what others hold. Index: artifacts_expiry, then the primary key.
with old as materialized (
    select a.org_id, a.artifact_id from duly.artifacts a
    where a.expires_at <= duly.now() order by a.expires_at limit %(limit)s for update skip locked
), gone as (
    delete from duly.artifacts a using old o where a.org_id = o.org_id and a.artifact_id = o.artifact_id
    returning a.org_id, a.blob_ref
), released as (
    insert into duly.released_blobs (blob_ref)
    select distinct g.blob_ref from gone g where g.blob_ref like 'blob:' || g.org_id || '/%%'
    on conflict (blob_ref) do update set released_at = excluded.released_at
)
select count(*) from gone
