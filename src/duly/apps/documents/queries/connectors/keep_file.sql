-- Purpose: a remote file is this document from now on, at this revision.
insert into documents.connector_files
    (org_id, connector_id, remote_id, revision, remote_path, checksum, document_id, version, job_id)
values (%(org_id)s, %(connector_id)s, %(remote_id)s, %(revision)s, %(remote_path)s, %(checksum)s,
    %(document_id)s, %(version)s, %(job_id)s)
on conflict (org_id, connector_id, remote_id) do update set revision = excluded.revision,
    remote_path = excluded.remote_path, checksum = excluded.checksum, document_id = excluded.document_id,
    version = excluded.version, job_id = excluded.job_id, imported_at = duly.now(), removed_at = null
