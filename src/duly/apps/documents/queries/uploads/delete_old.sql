-- Purpose: uploads of an org that nobody has gone on with for a week.
delete from documents.uploads where org_id = %(org_id)s and created_at < duly.now() - make_interval(days => 7)
returning upload_id
