-- Purpose: an open gate, if there is none. Index: the primary key. Another who makes it is waited for.
insert into duly.gates (org_id, job_type) values (%(org_id)s, %(job_type)s)
on conflict (org_id, job_type) do nothing
