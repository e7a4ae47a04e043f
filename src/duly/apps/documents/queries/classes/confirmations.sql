-- Purpose: what people have said that a document is, the newest first.
select c.doc_type, c.confirmed_by, c.confirmed_at
from documents.confirmations c
where c.org_id = %(org_id)s and c.document_id = %(document_id)s
order by c.confirmed_at desc, c.confirmation_id desc
limit %(limit)s
