-- Purpose: models that the org does not work with have no file any more. Locks: their rows.
update documents.class_models m set blob = null
where m.org_id = %(org_id)s and not m.active and m.blob is not null
