-- Purpose: the model that the org works with. Index: the one of active ones.
select m.model_version, m.blob, m.sha256 from documents.class_models m where m.org_id = %(org_id)s and m.active
