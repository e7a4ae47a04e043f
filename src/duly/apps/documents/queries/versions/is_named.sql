-- Purpose: whether any document is, or was, this content. Index: document_versions (org_id, sha256).
select exists (select from documents.document_versions where org_id = %(org_id)s and sha256 = %(sha256)s)
