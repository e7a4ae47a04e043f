-- name: deactivate
-- Purpose: deactivate the model that the org uses.
update documents.class_models set active = false where org_id = %(org_id)s and active

-- name: forget_blobs
-- Purpose: clear the file names of inactive models, whose files are removed. Locks: their rows.
update documents.class_models m set blob = null
where m.org_id = %(org_id)s and not m.active and m.blob is not null

-- name: list
-- Purpose: list the trained models of an org, newest first.
select to_jsonb(m) - 'org_id' - 'blob' - 'sha256' - 'report' from documents.class_models m
where m.org_id = %(org_id)s
order by m.trained_at desc
limit %(limit)s

-- name: lock
-- Purpose: serialize changes of an org's models and their files. Locks: an advisory lock until the transaction ends.
select pg_advisory_xact_lock(hashtextextended('documents.class_models:' || %(org_id)s::text, 0))

-- name: read_active
-- Purpose: read the model that the org uses. Index: the partial one of active models.
select m.model_version, m.blob, m.sha256 from documents.class_models m where m.org_id = %(org_id)s and m.active

-- name: save
-- Purpose: store a trained model; training on equal examples updates the equal model.
insert into documents.class_models
    (org_id, model_version, blob, sha256, labels, examples, accuracy, rules_accuracy, report, job_id, active)
values (%(org_id)s, %(model_version)s, %(blob)s, %(sha256)s, %(labels)s, %(examples)s, %(accuracy)s,
        %(rules_accuracy)s, %(report)s, %(job_id)s, %(active)s)
on conflict (org_id, model_version) do update
set blob = excluded.blob, examples = excluded.examples, report = excluded.report, job_id = excluded.job_id,
    active = excluded.active, trained_at = duly.now()
