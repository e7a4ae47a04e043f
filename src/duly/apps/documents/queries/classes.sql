-- name: active_model
-- Purpose: the model that the org works with. Index: the one of active ones.
select m.model_version, m.blob, m.sha256 from documents.class_models m where m.org_id = %(org_id)s and m.active

-- name: confirmations
-- Purpose: what people have said that a document is, the newest first.
select c.doc_type, c.confirmed_by, c.confirmed_at
from documents.confirmations c
where c.org_id = %(org_id)s and c.document_id = %(document_id)s
order by c.confirmed_at desc, c.confirmation_id desc
limit %(limit)s

-- name: filing
-- Purpose: where documents of each type belong, as far as the folders are open.
select f.doc_type, f.node_id from documents.filing_rules f
where f.org_id = %(org_id)s and f.node_id <> all(%(hidden_folders)s)
order by f.doc_type

-- name: forget_blobs
-- Purpose: models that the org does not work with have no file any more. Locks: their rows.
update documents.class_models m set blob = null
where m.org_id = %(org_id)s and not m.active and m.blob is not null

-- name: history
-- Purpose: what was said of a document, the newest first; folders that are closed are not named.
select to_jsonb(c) - 'org_id' || jsonb_build_object('suggested_node',
    case when c.suggested_node <> all(%(hidden_folders)s) then c.suggested_node end)
from documents.classifications c
where c.org_id = %(org_id)s and c.document_id = %(document_id)s
order by c.classification_id desc
limit %(limit)s

-- name: lock_models
-- Purpose: models of an org take over one after the other. Locks: an advisory one, until the transaction ends.
select pg_advisory_xact_lock(hashtextextended('documents.class_models:' || %(org_id)s::text, 0))

-- name: models
-- Purpose: what was learned so far, the newest first.
select to_jsonb(m) - 'org_id' - 'blob' - 'sha256' - 'report' from documents.class_models m
where m.org_id = %(org_id)s
order by m.trained_at desc
limit %(limit)s

-- name: retire_models
-- Purpose: the org works with none of its models any more.
update documents.class_models set active = false where org_id = %(org_id)s and active

-- name: set_filing
-- Purpose: documents of this type belong there from now on.
insert into documents.filing_rules (org_id, doc_type, node_id, set_by)
values (%(org_id)s, %(doc_type)s, %(node_id)s, %(set_by)s)
on conflict (org_id, doc_type) do update set node_id = excluded.node_id, set_by = excluded.set_by, set_at = duly.now()

-- name: show
-- Purpose: the document has this type, unless somebody has said what it is. Locks: its row.
update documents.documents set doc_type = %(doc_type)s, doc_type_confidence = %(confidence)s, updated_at = duly.now()
where org_id = %(org_id)s and document_id = %(document_id)s and not doc_type_confirmed
returning 1

-- name: texts
-- Purpose: the beginning of what was read out of a document. Index: the primary key.
select c.page_number, c.text from documents.document_chunks c
where c.org_id = %(org_id)s and c.document_id = %(document_id)s and c.chunk_index < %(limit)s
order by c.chunk_index

-- name: unset_filing
-- Purpose: documents of this type belong nowhere in particular.
delete from documents.filing_rules where org_id = %(org_id)s and doc_type = %(doc_type)s
