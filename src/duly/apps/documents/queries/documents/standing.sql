-- Purpose: how an org's documents stand: those that wait for somebody's word, what is being read, and how readings of late
-- have ended; what lies in closed folders is not counted, and so many are looked at and no more.
-- Index: documents (org_id, doc_type, document_id); classifications (org_id, document_id, classification_id);
-- extractions (org_id, updated_at), those under way; extractions (org_id, finished_at); the primary keys.
with unsure as materialized (
    select d.org_id, d.document_id from documents.documents d
    where d.org_id = %(org_id)s and d.doc_type = %(unsure)s and not d.doc_type_confirmed
      and (d.node_id is null or d.node_id <> all(%(hidden_folders)s))
    order by d.document_id desc limit %(look)s
), reading as materialized (
    select e.document_id from documents.extractions e
    where e.org_id = %(org_id)s and e.status in ('queued', 'running')
    order by e.updated_at desc limit %(look)s
), ended as materialized (
    select e.document_id, e.status from documents.extractions e
    where e.org_id = %(org_id)s and e.finished_at >= duly.now() - %(late)s
    order by e.finished_at desc limit %(look)s
), closed as (
    select d.document_id from documents.documents d where d.org_id = %(org_id)s and d.node_id = any(%(hidden_folders)s)
)
select (select count(*) from unsure u cross join lateral (
            select c.review from documents.classifications c
            where c.org_id = u.org_id and c.document_id = u.document_id
            order by c.classification_id desc limit 1) c
        where c.review),
       (select count(*) from reading r where r.document_id not in (select document_id from closed)),
       (select jsonb_object_agg(status, n) from (
            select status, count(*) as n from ended e where e.document_id not in (select document_id from closed)
            group by status) s),
       greatest((select count(*) from unsure), (select count(*) from reading), (select count(*) from ended)) = %(look)s
