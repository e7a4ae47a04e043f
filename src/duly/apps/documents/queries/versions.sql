-- name: list
-- Purpose: return the versions of a document, newest first; a null `before` starts at the newest, a null limit returns all.
-- Index: the primary key.
select to_jsonb(v) - 'org_id' - 'document_id' from documents.document_versions v
where v.org_id = %(org_id)s and v.document_id = %(document_id)s
  and (%(before)s::bigint is null or v.version < %(before)s)
order by v.version desc
limit %(limit)s

-- name: read
-- Purpose: return a version of a document; null is the newest. Index: the primary key.
select to_jsonb(v) - 'org_id' - 'document_id' from documents.document_versions v
where v.org_id = %(org_id)s and v.document_id = %(document_id)s
  and (%(version)s::bigint is null or v.version = %(version)s)
order by v.version desc
limit 1

-- name: is_referenced
-- Purpose: return whether a version of any document has this content. Index: document_versions (org_id, sha256).
select exists (select from documents.document_versions where org_id = %(org_id)s and sha256 = %(sha256)s)
