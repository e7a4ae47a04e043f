-- Purpose: one job of the session's org, as the view shows it. Index: primary keys of record and state.
select * from duly.jobs where org_id = %(org_id)s and job_id = %(job_id)s
