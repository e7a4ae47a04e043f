-- name: insert
-- Purpose: insert a document with its first version.
with document as (
    insert into documents.documents (org_id, node_id, name, sha256, size, media_type, metadata, created_by)
    values (%(org_id)s, %(node_id)s, %(name)s, %(sha256)s, %(size)s, %(media_type)s, %(metadata)s, %(created_by)s)
    returning org_id, document_id
)
insert into documents.document_versions
    (org_id, document_id, version, sha256, size, media_type, file_name, created_by)
select org_id, document_id, 1, %(sha256)s, %(size)s, %(media_type)s, %(name)s, %(created_by)s from document
returning document_id

-- name: add_version
-- Purpose: make another file the current version; the previous one stays as a version. Search finds the previous text until
-- the new one is extracted, or its extraction ends without text.
with document as (
    update documents.documents set version = version + 1, sha256 = %(sha256)s, size = %(size)s,
        media_type = %(media_type)s, status = 'stored', updated_at = duly.now(), extraction_id = null,
        page_count = null, chunk_count = null, language = null, doc_type_confirmed = false
    where org_id = %(org_id)s and document_id = %(document_id)s
    returning org_id, document_id, version
)
insert into documents.document_versions
    (org_id, document_id, version, sha256, size, media_type, file_name, created_by)
select org_id, document_id, version, %(sha256)s, %(size)s, %(media_type)s, %(name)s, %(created_by)s from document
returning version

-- name: update
-- Purpose: set the name, folder or metadata; null keeps the current value.
update documents.documents set name = coalesce(%(name)s, name),
    node_id = case when %(moves)s then %(node_id)s else node_id end,
    metadata = coalesce(%(metadata)s, metadata), updated_at = duly.now()
where org_id = %(org_id)s and document_id = %(document_id)s

-- name: delete
-- Purpose: delete a document; the rows that refer to it are deleted by cascade.
delete from documents.documents where org_id = %(org_id)s and document_id = %(document_id)s

-- name: read
-- Purpose: return a document unless its folder is hidden.
select to_jsonb(d) - 'org_id' from documents.documents d
where d.org_id = %(org_id)s and d.document_id = %(document_id)s
  and (d.node_id is null or d.node_id <> all(%(hidden_folders)s))

-- name: version_of
-- Purpose: return the current version of a document.
select d.version from documents.documents d where d.org_id = %(org_id)s and d.document_id = %(document_id)s

-- name: list
-- Purpose: return a page of documents, newest first; null filters match all. Index: the primary key, backwards.
select to_jsonb(d) - 'org_id' from documents.documents d
where d.org_id = %(org_id)s
  and (d.node_id is null or d.node_id <> all(%(hidden_folders)s))
  and (%(node_id)s::uuid is null or d.node_id = %(node_id)s)
  and (not %(in_root)s or d.node_id is null)
  and (%(doc_type)s::text is null or d.doc_type = %(doc_type)s)
  and (%(status)s::text is null or d.status = %(status)s)
  and (%(after)s::uuid is null or d.document_id < %(after)s)
order by d.document_id desc
limit %(limit)s

-- name: find_content
-- Purpose: return the oldest document with this content that is not in a hidden folder.
-- Index: documents (org_id, sha256).
select d.document_id, d.version
from documents.documents d
where d.org_id = %(org_id)s and d.sha256 = %(sha256)s and (d.node_id is null or d.node_id <> all(%(hidden_folders)s))
order by d.document_id
limit 1

-- name: filter_visible
-- Purpose: return which of these documents are not in a hidden folder. Index: the primary key.
select d.document_id from documents.documents d
where d.org_id = %(org_id)s and d.document_id = any(%(documents)s)
  and (d.node_id is null or d.node_id <> all(%(hidden_folders)s))

-- name: list_remaining
-- Purpose: return which of these documents and uploads still exist.
select d.document_id from documents.documents d where d.org_id = %(org_id)s and d.document_id = any(%(documents)s)
union all
select u.upload_id from documents.uploads u where u.org_id = %(org_id)s and u.upload_id = any(%(uploads)s)

-- name: lock
-- Purpose: lock a document that is about to change, unless its folder is hidden. Locks: its row.
select d.node_id, d.name, d.version, d.sha256
from documents.documents d
where d.org_id = %(org_id)s and d.document_id = %(document_id)s
  and (d.node_id is null or d.node_id <> all(%(hidden_folders)s))
for update

-- name: lock_content
-- Purpose: serialize the transactions that file or remove a content of an org.
-- Locks: an advisory lock until the transaction ends; taken before any row.
select pg_advisory_xact_lock(hashtextextended('documents:' || %(org_id)s::text || ':' || %(sha256)s, 0))

-- name: count_overview
-- Purpose: count an org's documents to review, its active extractions, and its recently ended extractions by status;
-- documents in hidden folders are not counted, and at most `max_counted` rows of each are read.
-- Index: documents (org_id, doc_type, document_id); classifications (org_id, document_id, classification_id);
-- extractions (org_id, updated_at) where active; extractions (org_id, finished_at); the primary keys.
with unsure as materialized (
    select d.org_id, d.document_id from documents.documents d
    where d.org_id = %(org_id)s and d.doc_type = %(unsure)s and not d.doc_type_confirmed
      and (d.node_id is null or d.node_id <> all(%(hidden_folders)s))
    order by d.document_id desc limit %(max_counted)s
), active as materialized (
    select e.document_id from documents.extractions e
    where e.org_id = %(org_id)s and e.status in ('queued', 'running')
    order by e.updated_at desc limit %(max_counted)s
), ended as materialized (
    select e.document_id, e.status from documents.extractions e
    where e.org_id = %(org_id)s and e.finished_at >= duly.now() - %(recent)s
    order by e.finished_at desc limit %(max_counted)s
), hidden as (
    select d.document_id from documents.documents d where d.org_id = %(org_id)s and d.node_id = any(%(hidden_folders)s)
)
select (select count(*) from unsure u cross join lateral (
            select c.review from documents.classifications c
            where c.org_id = u.org_id and c.document_id = u.document_id
            order by c.classification_id desc limit 1) c
        where c.review),
       (select count(*) from active a where a.document_id not in (select document_id from hidden)),
       (select jsonb_object_agg(status, n) from (
            select status, count(*) as n from ended e where e.document_id not in (select document_id from hidden)
            group by status) s),
       greatest((select count(*) from unsure), (select count(*) from active), (select count(*) from ended)) = %(max_counted)s
