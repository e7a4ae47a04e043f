-- Purpose: the job of the session's org behind a permalink. Index: job_records_by_result.
select job_id from duly.job_records where org_id = %(org_id)s and result_id = %(result_id)s limit 1
