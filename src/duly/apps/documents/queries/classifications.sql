-- name: confirm
-- Purpose: confirm the type of a document. Locks: its row.
with confirmation as (
    insert into documents.confirmations (org_id, document_id, doc_type, confirmed_by)
    values (%(org_id)s, %(document_id)s, %(doc_type)s, %(confirmed_by)s)
)
update documents.documents set doc_type = %(doc_type)s, doc_type_confidence = 1, doc_type_confirmed = true,
    updated_at = duly.now()
where org_id = %(org_id)s and document_id = %(document_id)s

-- name: insert
-- Purpose: store a classification, with the folder for documents of its type unless that folder is hidden.
insert into documents.classifications
    (org_id, document_id, version, doc_type, confidence, review, suggested_node, evidence, model_version,
     consent_given_by)
select d.org_id, d.document_id, d.version, %(doc_type)s, %(confidence)s, %(review)s, f.node_id, %(evidence)s,
       %(model_version)s, %(consent_given_by)s
from documents.documents d
left join documents.filing_rules f on f.org_id = d.org_id and f.doc_type = %(doc_type)s
    and f.node_id <> all(%(hidden_folders)s)
where d.org_id = %(org_id)s and d.document_id = %(document_id)s
returning to_jsonb(classifications) - 'org_id'

-- name: list
-- Purpose: list the classifications of a document, newest first, without the names of hidden folders.
select to_jsonb(c) - 'org_id' || jsonb_build_object('suggested_node',
    case when c.suggested_node <> all(%(hidden_folders)s) then c.suggested_node end)
from documents.classifications c
where c.org_id = %(org_id)s and c.document_id = %(document_id)s
order by c.classification_id desc
limit %(limit)s

-- name: list_confirmations
-- Purpose: list the confirmed types of a document, newest first.
select c.doc_type, c.confirmed_by, c.confirmed_at
from documents.confirmations c
where c.org_id = %(org_id)s and c.document_id = %(document_id)s
order by c.confirmed_at desc, c.confirmation_id desc
limit %(limit)s

-- name: list_examples
-- Purpose: list the training set: the documents confirmed last, in the order of their confirmation, with the
-- beginning of their texts. Documents without text are left out.
with confirmed as (
    select distinct on (c.document_id) c.document_id, c.doc_type, c.confirmed_at, c.confirmation_id
    from documents.confirmations c
    where c.org_id = %(org_id)s
    order by c.document_id, c.confirmed_at desc, c.confirmation_id desc
), latest as (
    select * from confirmed order by confirmed_at desc, confirmation_id desc limit %(limit)s
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

-- name: list_unsure
-- Purpose: a page of the documents with a type of low confidence that is not confirmed, newest first, each with its
-- latest classification, without the names of hidden folders.
-- Index: documents (org_id, doc_type, document_id), backwards; classifications (org_id, document_id, classification_id).
select to_jsonb(d) - 'org_id', to_jsonb(c) - 'org_id' || jsonb_build_object('suggested_node',
    case when c.suggested_node <> all(%(hidden_folders)s) then c.suggested_node end)
from documents.documents d
cross join lateral (
    select * from documents.classifications c
    where c.org_id = d.org_id and c.document_id = d.document_id
    order by c.classification_id desc
    limit 1
) c
where d.org_id = %(org_id)s and d.doc_type = %(unsure)s and not d.doc_type_confirmed and c.review
  and (d.node_id is null or d.node_id <> all(%(hidden_folders)s))
  and (%(after)s::uuid is null or d.document_id < %(after)s)
order by d.document_id desc
limit %(limit)s

-- name: read_texts
-- Purpose: read the first passages of a document. Index: the primary key.
select c.page_number, c.text from documents.document_chunks c
where c.org_id = %(org_id)s and c.document_id = %(document_id)s and c.chunk_index < %(limit)s
order by c.chunk_index

-- name: set_document_type
-- Purpose: set the type of a document, unless a type is confirmed. Locks: its row.
update documents.documents set doc_type = %(doc_type)s, doc_type_confidence = %(confidence)s, updated_at = duly.now()
where org_id = %(org_id)s and document_id = %(document_id)s and not doc_type_confirmed
returning 1
