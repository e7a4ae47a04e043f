-- Purpose: the kept chunks of a job, oldest first. Index: the primary key of the partial snapshots.
select chunk_key, payload, payload_ref from duly.result_snapshots
where org_id = %(org_id)s and job_id = %(job_id)s and result_kind = 'partial' and chunk_key is not null
order by result_seq
