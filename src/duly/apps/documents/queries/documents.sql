-- name: change
-- Purpose: another name, folder or metadata; null leaves it as it is.
update documents.documents set name = coalesce(%(name)s, name),
    node_id = case when %(moves)s then %(node_id)s else node_id end,
    metadata = coalesce(%(metadata)s, metadata), updated_at = duly.now()
where org_id = %(org_id)s and document_id = %(document_id)s

-- name: delete
-- Purpose: a document and everything that hangs on it.
delete from documents.documents where org_id = %(org_id)s and document_id = %(document_id)s

-- name: find_content
-- Purpose: the oldest document of this content that lies in no closed folder.
-- Index: documents (org_id, sha256).
select d.document_id, d.version
from documents.documents d
where d.org_id = %(org_id)s and d.sha256 = %(sha256)s and (d.node_id is null or d.node_id <> all(%(hidden_folders)s))
order by d.document_id
limit 1

-- name: left
-- Purpose: which of these documents and uploads are still there.
select d.document_id from documents.documents d where d.org_id = %(org_id)s and d.document_id = any(%(documents)s)
union all
select u.upload_id from documents.uploads u where u.org_id = %(org_id)s and u.upload_id = any(%(uploads)s)

-- name: lock
-- Purpose: a document that is about to change, if it lies in no closed folder. Locks: its row.
select d.node_id, d.name, d.version, d.sha256
from documents.documents d
where d.org_id = %(org_id)s and d.document_id = %(document_id)s
  and (d.node_id is null or d.node_id <> all(%(hidden_folders)s))
for update

-- name: lock_content
-- Purpose: whoever files or removes a content of an org does so one after the other.
-- Locks: an advisory one, until the end of the transaction; taken before any row.
select pg_advisory_xact_lock(hashtextextended('documents:' || %(org_id)s::text || ':' || %(sha256)s, 0))

-- name: read
-- Purpose: a document, if it lies in no closed folder.
select to_jsonb(d) - 'org_id' from documents.documents d
where d.org_id = %(org_id)s and d.document_id = %(document_id)s
  and (d.node_id is null or d.node_id <> all(%(hidden_folders)s))

-- name: filter_visible
-- Purpose: which of these documents lie in no closed folder. Index: the primary key.
select d.document_id from documents.documents d
where d.org_id = %(org_id)s and d.document_id = any(%(documents)s)
  and (d.node_id is null or d.node_id <> all(%(hidden_folders)s))

-- name: version_of
-- Purpose: which version a document is at.
select d.version from documents.documents d where d.org_id = %(org_id)s and d.document_id = %(document_id)s
