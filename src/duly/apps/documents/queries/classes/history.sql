-- Purpose: what was said of a document, the newest first; folders that are closed are not named.
select to_jsonb(c) - 'org_id' || jsonb_build_object('suggested_node',
    case when c.suggested_node <> all(%(barred)s) then c.suggested_node end)
from documents.classifications c
where c.org_id = %(org_id)s and c.document_id = %(document_id)s
order by c.classification_id desc
limit %(limit)s
