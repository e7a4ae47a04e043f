-- Purpose: one snapshot of a job of the session's org. Index: result_partials_key, result_finals_once.
select result_kind, result_seq, chunk_key, payload, payload_ref, summary, created_at
from duly.result_snapshots
where org_id = %(org_id)s and job_id = %(job_id)s and result_seq = %(seq)s
