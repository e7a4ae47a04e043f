-- Purpose: the document is another file from now on; what it was stays as a version. Its text is found until that of
-- the new one is there, or until it is known that there is none.
with moved as (
    update documents.documents set version = version + 1, sha256 = %(sha256)s, size = %(size)s,
        media_type = %(media_type)s, status = 'stored', updated_at = duly.now(), extraction_id = null,
        page_count = null, chunk_count = null, language = null, doc_type_confirmed = false
    where org_id = %(org_id)s and document_id = %(document_id)s
    returning org_id, document_id, version
)
insert into documents.document_versions
    (org_id, document_id, version, sha256, size, media_type, file_name, created_by)
select org_id, document_id, version, %(sha256)s, %(size)s, %(media_type)s, %(name)s, %(created_by)s from moved
returning version
