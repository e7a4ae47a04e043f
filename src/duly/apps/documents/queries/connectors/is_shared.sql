-- Purpose: whether a document stands for another remote file as well: the two had the same content.
-- Index: connector_files (org_id, document_id).
select exists (
    select from documents.connector_files f
    where f.org_id = %(org_id)s and f.document_id = %(document_id)s
      and (f.connector_id, f.remote_id) <> (%(connector_id)s, %(remote_id)s))
