-- Purpose: the oldest document of this content that lies in no closed folder.
-- Index: documents (org_id, sha256).
select d.document_id, d.version
from documents.documents d
where d.org_id = %(org_id)s and d.sha256 = %(sha256)s and (d.node_id is null or d.node_id <> all(%(barred)s))
order by d.document_id
limit 1
