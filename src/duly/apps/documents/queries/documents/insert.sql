-- Purpose: a new document with its first version.
with made as (
    insert into documents.documents (org_id, node_id, name, sha256, size, media_type, metadata, created_by)
    values (%(org_id)s, %(node_id)s, %(name)s, %(sha256)s, %(size)s, %(media_type)s, %(metadata)s, %(created_by)s)
    returning org_id, document_id
)
insert into documents.document_versions
    (org_id, document_id, version, sha256, size, media_type, file_name, created_by)
select org_id, document_id, 1, %(sha256)s, %(size)s, %(media_type)s, %(name)s, %(created_by)s from made
returning document_id
