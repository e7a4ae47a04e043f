-- Purpose: an extraction ended without text; what was sent elsewhere until then is paid, by the price that was said.
-- Its document says how it ended only if this was about its current version: it stays as it was if it has been read,
-- and is still being read if another extraction is under way.
with ended as (
    update documents.extractions e set status = %(status)s, error_code = %(error_code)s,
        error_message = %(error_message)s, finished_at = duly.now(), updated_at = duly.now(),
        actual_pages = case when e.consent_given_at is not null then %(pages)s end,
        actual_cost_cents = case when e.consent_given_at is not null and e.estimated_pages > 0
            then ceil(%(pages)s::numeric * e.estimated_cost_cents / e.estimated_pages) end
    where e.org_id = %(org_id)s and e.job_id = %(job_id)s and e.status in ('queued', 'running')
    returning e.document_id, e.version, e.extraction_id
), shown as (
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
select e.document_id, coalesce(s.has_no_text, false) from ended e left join shown s using (document_id)
