-- Purpose: a document says what was read out of it; its language is that of most of its text. What it is, as it says.
update documents.documents d set status = %(status)s, extraction_id = %(extraction_id)s, page_count = %(pages)s,
    chunk_count = %(chunks)s, updated_at = duly.now(), language = (
        select c.language from documents.document_chunks c
        where c.org_id = d.org_id and c.document_id = d.document_id and c.language is not null
        group by c.language order by sum(length(c.text)) desc, c.language limit 1)
where d.org_id = %(org_id)s and d.document_id = %(document_id)s
returning d.doc_type
