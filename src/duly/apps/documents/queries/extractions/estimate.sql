-- Purpose: what an extraction will take, said before anything is sent.
update documents.extractions
set estimated_pages = %(pages)s, estimated_cost_cents = %(cents)s, updated_at = duly.now()
where org_id = %(org_id)s and extraction_id = %(extraction_id)s
