-- Purpose: the lines of a job after a known one, attempt by attempt, or of one attempt. Index: the primary key.
select attempt, line_seq, logged_at, level, message, coalesce(fields, '{}') as fields from duly.job_logs
where org_id = %(org_id)s and job_id = %(job_id)s and (attempt, line_seq) > (%(after_attempt)s, %(after_seq)s)
  and (%(attempt)s::integer is null or attempt = %(attempt)s)
order by attempt, line_seq limit %(limit)s
