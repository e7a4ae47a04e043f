-- Purpose: what was learned so far, the newest first.
select to_jsonb(m) - 'org_id' - 'blob' - 'sha256' - 'report' from documents.class_models m
where m.org_id = %(org_id)s
order by m.trained_at desc
limit %(limit)s
