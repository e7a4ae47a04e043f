-- Purpose: the files of models that the org no longer works with: named for the last time. Locks: their rows.
with old as (
    select m.org_id, m.model_version, m.blob from documents.class_models m
    where m.org_id = %(org_id)s and not m.active and m.blob is not null
    for update
)
update documents.class_models m set blob = null
from old
where m.org_id = old.org_id and m.model_version = old.model_version
returning old.blob
