-- Purpose: keep lines that handlers logged. No fence: a line says of which attempt it is, and changes nothing.
-- Locks: none but its own rows; what is there already stays. Index: the primary key.
insert into duly.job_logs (org_id, job_id, attempt, line_seq, logged_at, level, message, fields)
select l.org_id, l.job_id, l.attempt, l.line_seq, duly.now() - make_interval(secs => l.age), l.level, l.message, l.fields
from json_to_recordset(%(lines)s::json) as l(
    org_id uuid, job_id uuid, attempt integer, line_seq integer, age double precision, level text, message text,
    fields jsonb)
on conflict do nothing
