-- Lines that handlers logged with `ctx.log`.

-- name: write
-- Insert lines. No fence: a line names its attempt and changes nothing else.
-- Locks: none but its own rows; existing lines stay. Index: the primary key.
insert into duly.job_logs (org_id, job_id, attempt, line_seq, logged_at, level, message, fields)
select l.org_id, l.job_id, l.attempt, l.line_seq, duly.now() - make_interval(secs => l.age), l.level, l.message, l.fields
from json_to_recordset(%(lines)s::json) as l(
    org_id uuid, job_id uuid, attempt integer, line_seq integer, age double precision, level text, message text,
    fields jsonb)
on conflict do nothing

-- name: read
-- The lines of a job after a known one, of all attempts or of one. Index: the primary key.
select attempt, line_seq, logged_at, level, message, coalesce(fields, '{}') as fields from duly.job_logs
where org_id = %(org_id)s and job_id = %(job_id)s and (attempt, line_seq) > (%(after_attempt)s, %(after_seq)s)
  and (%(attempt)s::integer is null or attempt = %(attempt)s)
order by attempt, line_seq limit %(limit)s
