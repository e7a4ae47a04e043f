-- Purpose: what a job was given, if it lies in its row. Index: the primary key.
select r.payload from duly.job_records r where r.org_id = %(org_id)s and r.job_id = %(job_id)s
