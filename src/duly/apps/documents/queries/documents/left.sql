-- Purpose: which of these documents and uploads are still there.
select d.document_id from documents.documents d where d.org_id = %(org_id)s and d.document_id = any(%(documents)s)
union all
select u.upload_id from documents.uploads u where u.org_id = %(org_id)s and u.upload_id = any(%(uploads)s)
