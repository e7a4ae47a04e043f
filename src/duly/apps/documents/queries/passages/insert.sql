-- Purpose: all passages of a document at once.
insert into documents.document_chunks
    (org_id, document_id, extraction_id, chunk_index, page_number, element_type, text, metadata, language)
select %(org_id)s, %(document_id)s, %(extraction_id)s, p.index, p.page, p.type, p.text, p.metadata::jsonb, p.language
from unnest(%(indexes)s::integer[], %(pages)s::integer[], %(types)s::text[], %(texts)s::text[],
            %(metadata)s::text[], %(languages)s::text[]) p(index, page, type, text, metadata, language)
