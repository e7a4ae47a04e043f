-- Purpose: which of these few jobs fit what is asked for beyond the list that found them. Metadata is compared as text,
-- because that is how it is asked for. Index: the primary keys of record and state; the state is read if it matters.
-- Lateral, with a limit: each job is looked up by its key, whatever the planner thinks of the tables.
select r.job_id
from unnest(%(job_ids)s::uuid[]) k(job_id)
cross join lateral (
    select * from duly.job_records r where r.org_id = %(org_id)s and r.job_id = k.job_id limit 1) r
where (%(job_type)s::text is null or r.job_type = %(job_type)s)
  and (%(queue)s::text is null or r.queue = %(queue)s)
  and (%(created_after)s::timestamptz is null or r.created_at >= %(created_after)s)
  and (%(created_before)s::timestamptz is null or r.created_at < %(created_before)s)
  and (%(metadata)s::jsonb is null or not exists (
      select from jsonb_each_text(%(metadata)s::jsonb) m where r.metadata ->> m.key is distinct from m.value))
  and (%(any_status)s or coalesce((
      select s.status from duly.job_states s where s.org_id = r.org_id and s.job_id = r.job_id), 'queued') = any (%(statuses)s))
  and (%(outcome)s::text is null or coalesce((
      select s.outcome from duly.job_states s where s.org_id = r.org_id and s.job_id = r.job_id), 'pending') = %(outcome)s)
