-- Purpose: a page of the documents whose type was too unsure to be believed, and that nobody has confirmed since;
-- the newest first, each with what was said of it last. Folders that are closed are not named.
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
