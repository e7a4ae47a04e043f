-- name: create
-- Purpose: create the record of a requested extraction, with the consent if a remote engine was allowed.
insert into documents.extractions (org_id, extraction_id, document_id, version, job_id, engine, consent_given_at,
    consent_given_by, estimated_pages, estimated_cost_cents)
values (%(org_id)s, %(extraction_id)s, %(document_id)s, %(version)s, %(job_id)s, %(engine)s,
    case when %(consent_by)s::text is not null then duly.now() end, %(consent_by)s,
    %(estimated_pages)s, %(estimated_cost_cents)s)

-- name: find_active
-- Purpose: find an active extraction of the same version by the same engine, with consent if that is given.
-- Its job must be active too: the record of a canceled job may not be settled yet.
select e.extraction_id, e.job_id from documents.extractions e
where e.org_id = %(org_id)s and e.document_id = %(document_id)s and e.version = %(version)s
  and e.engine = %(engine)s and e.status in ('queued', 'running')
  and (e.consent_given_at is not null) >= %(consent)s
  and exists (
      select from duly.jobs j
      where j.org_id = e.org_id and j.job_id = e.job_id and j.status in ('queued', 'running', 'partial'))
limit 1

-- name: finish
-- Purpose: mark an extraction as published, with its actual pages and cost.
update documents.extractions set status = %(status)s, actual_pages = %(pages)s, actual_cost_cents = %(cents)s,
    result_json = %(result)s, warnings = %(warnings)s, error_code = null, error_message = null,
    finished_at = duly.now(), updated_at = duly.now()
where org_id = %(org_id)s and extraction_id = %(extraction_id)s

-- name: forget_derived
-- Purpose: clear the file names of ended extractions that are not the document's current one; their files are removed.
-- Index: extractions (org_id, document_id, created_at).
update documents.extractions e set result_json = e.result_json || '{"derived": null}'
from documents.documents d
where e.org_id = %(org_id)s and e.document_id = %(document_id)s and e.result_json ->> 'derived' is not null
  and d.org_id = e.org_id and d.document_id = e.document_id
  and e.status not in ('queued', 'running') and e.extraction_id is distinct from d.extraction_id

-- name: has_older
-- Purpose: whether a document has other extractions. Index: extractions (org_id, document_id, created_at).
select 1 from documents.extractions e
where e.org_id = %(org_id)s and e.document_id = %(document_id)s and e.extraction_id <> %(extraction_id)s
limit 1

-- name: list
-- Purpose: list the extractions of a document, newest first; `before` is null on the first page.
-- Index: extractions (org_id, document_id, created_at).
select to_jsonb(e) - 'org_id' from documents.extractions e
where e.org_id = %(org_id)s and e.document_id = %(document_id)s
  and (%(before)s::uuid is null or (e.created_at, e.extraction_id) < (
      select b.created_at, b.extraction_id from documents.extractions b
      where b.org_id = %(org_id)s and b.document_id = %(document_id)s and b.extraction_id = %(before)s))
order by e.created_at desc, e.extraction_id desc
limit %(limit)s

-- name: list_for_reconciler
-- Purpose: list extractions that the reconciler compares with their jobs: active ones in an order that changes every turn, and
-- those that ended within an hour, latest first. Each has half of the limit, so that neither starves the other.
-- Index: extractions (org_id, updated_at) where queued or running; (org_id, finished_at).
(select e.extraction_id, e.job_id, e.status from documents.extractions e
 where e.org_id = %(org_id)s and e.status in ('queued', 'running') and e.job_id is not null
 order by md5(e.extraction_id::text || %(turn)s::text) limit %(limit)s / 2)
union all
(select e.extraction_id, e.job_id, e.status from documents.extractions e
 where e.org_id = %(org_id)s and e.finished_at > duly.now() - make_interval(hours => 1) and e.job_id is not null
 order by e.finished_at desc limit %(limit)s / 2)

-- name: list_outdated
-- Purpose: which of these extractions have ended and are not the document's current one. Index: the primary keys.
select e.extraction_id from documents.extractions e
join documents.documents d on d.org_id = e.org_id and d.document_id = e.document_id
where e.org_id = %(org_id)s and e.document_id = %(document_id)s and e.extraction_id = any(%(extractions)s)
  and e.status not in ('queued', 'running') and e.extraction_id is distinct from d.extraction_id

-- name: list_recent
-- Purpose: list active extractions, and recent ones that failed, newest first, with the names of their documents. At most
-- `max_counted` of each are read. Index: extractions (org_id, updated_at), active ones; extractions (org_id, finished_at); the
-- primary key of documents.
with active as materialized (
    select e.* from documents.extractions e
    where e.org_id = %(org_id)s and e.status in ('queued', 'running')
    order by e.updated_at desc limit %(max_counted)s
), ended as materialized (
    select e.* from documents.extractions e
    where e.org_id = %(org_id)s and e.finished_at >= duly.now() - %(recent)s
    order by e.finished_at desc limit %(max_counted)s
)
select to_jsonb(e) - 'org_id', d.name
from (select * from active union all select * from ended where status in ('failed', 'needs_ocr', 'blocked')) e
join documents.documents d on d.org_id = e.org_id and d.document_id = e.document_id
where d.node_id is null or d.node_id <> all(%(hidden_folders)s)
order by e.status in ('queued', 'running') desc, coalesce(e.finished_at, e.created_at) desc
limit %(limit)s

-- name: read_current
-- Purpose: read the extraction that the text of a document is from.
select to_jsonb(e) - 'org_id' from documents.extractions e
join documents.documents d on d.org_id = e.org_id and d.document_id = e.document_id and d.extraction_id = e.extraction_id
where e.org_id = %(org_id)s and e.document_id = %(document_id)s

-- name: set_current
-- Purpose: make an extraction the document's current one; the language is that of most of its text.
update documents.documents d set status = %(status)s, extraction_id = %(extraction_id)s, page_count = %(pages)s,
    chunk_count = %(chunks)s, updated_at = duly.now(), language = (
        select c.language from documents.document_chunks c
        where c.org_id = d.org_id and c.document_id = d.document_id and c.language is not null
        group by c.language order by sum(length(c.text)) desc, c.language limit 1)
where d.org_id = %(org_id)s and d.document_id = %(document_id)s
returning d.doc_type

-- name: set_document_extracting
-- Purpose: set the status of a document whose current version is being extracted.
update documents.documents set status = 'extracting', updated_at = duly.now()
where org_id = %(org_id)s and document_id = %(document_id)s and version = %(version)s

-- name: set_estimate
-- Purpose: record the pages and the cost of an extraction before anything is sent.
update documents.extractions
set estimated_pages = %(pages)s, estimated_cost_cents = %(cents)s, updated_at = duly.now()
where org_id = %(org_id)s and extraction_id = %(extraction_id)s

-- name: settle
-- Purpose: end an extraction without text. Pages that were sent until then are paid, at the estimated price.
-- Transition: the document gets this status only if the extraction was of its current version: it stays extracting if
-- another extraction is running, and keeps its status if it has text already.
with ended as (
    update documents.extractions e set status = %(status)s, error_code = %(error_code)s,
        error_message = %(error_message)s, finished_at = duly.now(), updated_at = duly.now(),
        actual_pages = case when e.consent_given_at is not null then %(pages)s end,
        actual_cost_cents = case when e.consent_given_at is not null and e.estimated_pages > 0
            then ceil(%(pages)s::numeric * e.estimated_cost_cents / e.estimated_pages) end
    where e.org_id = %(org_id)s and e.job_id = %(job_id)s and e.status in ('queued', 'running')
    returning e.document_id, e.version, e.extraction_id
), updated as (
    update documents.documents d set updated_at = duly.now(), status = coalesce(
        (select 'extracting' from documents.extractions o
         where o.org_id = d.org_id and o.document_id = d.document_id and o.version = d.version
           and o.status = 'running' and o.extraction_id <> ended.extraction_id limit 1),
        (select case b.status when 'done' then 'extracted' else b.status end from documents.extractions b
         where b.org_id = d.org_id and b.extraction_id = d.extraction_id and b.version = d.version
           and b.status in ('done', 'needs_ocr')),
        case when %(status)s = 'canceled' then (
            select o.status from documents.extractions o
            where o.org_id = d.org_id and o.document_id = d.document_id and o.version = d.version
              and o.status in ('failed', 'blocked') and o.extraction_id <> ended.extraction_id
            order by o.finished_at desc limit 1) end,
        case %(status)s when 'canceled' then 'stored' else %(status)s end)
    from ended
    where d.org_id = %(org_id)s and d.document_id = ended.document_id and d.version = ended.version
    returning d.document_id, d.extraction_id is null and d.status <> 'extracting' as has_no_text
)
select e.document_id, coalesce(s.has_no_text, false) from ended e left join updated s using (document_id)

-- name: start
-- Purpose: mark the extraction of a job as running, or create it if the job was enqueued without a record. Existing values
-- stay, above all the version: the consent was given for that one.
insert into documents.extractions as e (org_id, document_id, version, job_id, engine, status, started_at)
values (%(org_id)s, %(document_id)s, %(version)s, %(job_id)s, %(engine)s, 'running', duly.now())
on conflict (org_id, job_id) do update
    set status = 'running', started_at = coalesce(e.started_at, duly.now()), updated_at = duly.now(),
        error_code = null, error_message = null, finished_at = null
returning to_jsonb(e) - 'org_id'
