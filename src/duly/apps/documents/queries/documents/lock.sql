-- Purpose: a document that is about to change, if it lies in no closed folder. Locks: its row.
select d.node_id, d.name, d.version, d.sha256
from documents.documents d
where d.org_id = %(org_id)s and d.document_id = %(document_id)s
  and (d.node_id is null or d.node_id <> all(%(barred)s))
for update
