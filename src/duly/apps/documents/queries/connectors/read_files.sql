-- Purpose: what is known of these remote files. Index: the primary key.
select f.remote_id, f.revision, f.document_id, f.version, f.job_id, f.removed_at is not null
from documents.connector_files f
where f.org_id = %(org_id)s and f.connector_id = %(connector_id)s and f.remote_id = any(%(remote_ids)s)
