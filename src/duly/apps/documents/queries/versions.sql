-- name: is_named
-- Purpose: whether any document is, or was, this content. Index: document_versions (org_id, sha256).
select exists (select from documents.document_versions where org_id = %(org_id)s and sha256 = %(sha256)s)

-- name: list
-- Purpose: the files that a document has been, the newest first; null means from the newest, and all. Index: the primary key.
select to_jsonb(v) - 'org_id' - 'document_id' from documents.document_versions v
where v.org_id = %(org_id)s and v.document_id = %(document_id)s
  and (%(before)s::bigint is null or v.version < %(before)s)
order by v.version desc
limit %(limit)s

-- name: read
-- Purpose: one file that a document has been; null is the newest. Index: the primary key.
select to_jsonb(v) - 'org_id' - 'document_id' from documents.document_versions v
where v.org_id = %(org_id)s and v.document_id = %(document_id)s
  and (%(version)s::bigint is null or v.version = %(version)s)
order by v.version desc
limit 1
