-- Purpose: the final snapshot of a job. Index: result_finals_once.
select result_payload, result_payload_ref from duly.job_results
where org_id = %(org_id)s and job_id = %(job_id)s and result_kind = 'final'
