-- Purpose: what was learned; the same again is the same.
insert into documents.class_models
    (org_id, model_version, blob, sha256, labels, examples, accuracy, rules_accuracy, report, job_id, active)
values (%(org_id)s, %(model_version)s, %(blob)s, %(sha256)s, %(labels)s, %(examples)s, %(accuracy)s,
        %(rules_accuracy)s, %(report)s, %(job_id)s, %(active)s)
on conflict (org_id, model_version) do update
set blob = excluded.blob, examples = excluded.examples, report = excluded.report, job_id = excluded.job_id,
    active = excluded.active, trained_at = duly.now()
