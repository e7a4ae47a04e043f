-- Purpose: the readings that are under way, or those of late that did not end well, the newest first, with their documents;
-- of the latter so many are looked at and no more. Index: extractions (org_id, updated_at), those under way; extractions
-- (org_id, finished_at); the primary key of documents.
with active as materialized (
    select e.* from documents.extractions e
    where e.org_id = %(org_id)s and e.status in ('queued', 'running')
    order by e.updated_at desc limit %(look)s
), ended as materialized (
    select e.* from documents.extractions e
    where e.org_id = %(org_id)s and e.finished_at >= duly.now() - %(late)s
    order by e.finished_at desc limit %(look)s
)
select to_jsonb(e) - 'org_id', d.name
from (select * from active union all select * from ended where status in ('failed', 'needs_ocr', 'blocked')) e
join documents.documents d on d.org_id = e.org_id and d.document_id = e.document_id
where d.node_id is null or d.node_id <> all(%(hidden_folders)s)
order by e.status in ('queued', 'running') desc, coalesce(e.finished_at, e.created_at) desc
limit %(limit)s
