-- Purpose: the documents whose types were confirmed last, in the order of their confirmation, with the
-- beginning of their texts; those without a text teach nothing.
with said as (
    select distinct on (c.document_id) c.document_id, c.doc_type, c.confirmed_at, c.confirmation_id
    from documents.confirmations c
    where c.org_id = %(org_id)s
    order by c.document_id, c.confirmed_at desc, c.confirmation_id desc
), latest as (
    select * from said order by confirmed_at desc, confirmation_id desc limit %(limit)s
)
select l.doc_type, d.name, t.chunks
from latest l
join documents.documents d on d.org_id = %(org_id)s and d.document_id = l.document_id
cross join lateral (
    select jsonb_agg(jsonb_build_array(x.page_number, left(x.text, 2000)) order by x.chunk_index) as chunks
    from documents.document_chunks x
    where x.org_id = %(org_id)s and x.document_id = l.document_id and x.chunk_index < 8
) t
where t.chunks is not null
order by l.confirmed_at, l.confirmation_id
