-- Purpose: an extraction has been published, with what it took.
update documents.extractions set status = %(status)s, actual_pages = %(pages)s, actual_cost_cents = %(cents)s,
    result_json = %(result)s, warnings = %(warnings)s, error_code = null, error_message = null,
    finished_at = duly.now(), updated_at = duly.now()
where org_id = %(org_id)s and extraction_id = %(extraction_id)s
