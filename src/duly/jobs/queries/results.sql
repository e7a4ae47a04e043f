-- name: find
-- Purpose: the job of the session's org behind a permalink. Index: job_records_by_result.
select job_id from duly.job_records where org_id = %(org_id)s and result_id = %(result_id)s limit 1

-- name: read
-- Purpose: one result snapshot of a job of the session's org. Index: result_partials_key, result_finals_once.
select result_kind, result_seq, chunk_key, payload, payload_ref, summary, created_at
from duly.all_results
where org_id = %(org_id)s and job_id = %(job_id)s and result_seq = %(seq)s

-- name: read_partials
-- Purpose: the partial results of a job, oldest first. Index: the primary key of the partial snapshots.
select result_seq, chunk_key, payload, payload_ref, created_at from duly.result_snapshots
where org_id = %(org_id)s and job_id = %(job_id)s and result_kind = 'partial'
order by result_seq

-- name: read_chunks
-- Purpose: the stored chunks of a job, oldest first. Index: the primary key of the partial snapshots.
select chunk_key, payload, payload_ref from duly.result_snapshots
where org_id = %(org_id)s and job_id = %(job_id)s and result_kind = 'partial' and chunk_key is not null
order by result_seq

-- name: read_final
-- Purpose: the final result of a job. Index: result_finals_once.
select result_payload, result_payload_ref from duly.job_results
where org_id = %(org_id)s and job_id = %(job_id)s and result_kind = 'final'
