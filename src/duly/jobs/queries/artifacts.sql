-- name: list
-- Purpose: the artifacts of a job, by name. Index: the unique key of the artifacts.
select artifact_id, name, content_type, blob_ref, sha256, size from duly.artifacts
where org_id = %(org_id)s and job_id = %(job_id)s order by name
