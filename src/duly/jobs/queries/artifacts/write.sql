-- Purpose: write an artifact of a held job. The same name in the same job replaces it, and releases the old blob.
-- Fence: (org_id, job_id, attempt) and the status; the lock on the state row keeps the attempt until the commit, and
-- other writers of the same job away.
with held as materialized (
    select s.org_id, s.job_id from duly.job_states s
    where s.org_id = %(org_id)s and s.job_id = %(job_id)s and s.attempt = %(attempt)s and s.status in ('running', 'partial')
    for no key update
), released as (
    insert into duly.released_blobs (blob_ref)
    select a.blob_ref from held h join duly.artifacts a using (org_id, job_id)
    where a.name = %(name)s and a.blob_ref <> %(blob_ref)s
    on conflict (blob_ref) do update set released_at = excluded.released_at
)
insert into duly.artifacts as a (org_id, artifact_id, job_id, name, content_type, blob_ref, sha256, size, created_at, expires_at)
select h.org_id, %(artifact_id)s, h.job_id, %(name)s, %(content_type)s, %(blob_ref)s, %(sha256)s, %(size)s, duly.now(),
       duly.now() + %(keep_for)s::interval
from held h
on conflict (org_id, job_id, name) do update set
    content_type = excluded.content_type, blob_ref = excluded.blob_ref, sha256 = excluded.sha256, size = excluded.size,
    created_at = excluded.created_at, expires_at = excluded.expires_at
returning a.artifact_id
