-- Purpose: the org works with none of its models any more.
update documents.class_models set active = false where org_id = %(org_id)s and active
