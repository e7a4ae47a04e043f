-- name: publish
-- Purpose: publish the application's job types to plain SQL and to the console.
-- Locks: rows in the order of their names.
insert into duly.job_types as t (job_type, policy, payload_schema)
select j.job_type, j.policy, j.payload_schema
from json_to_recordset(%(job_types)s::json) as j(job_type text, policy jsonb, payload_schema jsonb)
order by j.job_type
on conflict (job_type) do update set
    policy = excluded.policy, payload_schema = excluded.payload_schema, published_at = duly.now()
where (t.policy, t.payload_schema) is distinct from (excluded.policy, excluded.payload_schema)
