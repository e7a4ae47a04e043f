-- Purpose: the partial snapshots of a job, oldest first. Index: the primary key of the partial snapshots.
select result_seq, chunk_key, payload, payload_ref, created_at from duly.result_snapshots
where org_id = %(org_id)s and job_id = %(job_id)s and result_kind = 'partial'
order by result_seq
