-- Purpose: match a few jobs against what their list does not imply. Metadata and payloads are compared as text, as
-- requests contain texts; in payloads only scalars match. A payload that is stored as a blob is empty here: no match.
-- Index: the primary keys of record, state and dead letter; the latter two are read if the filter needs them.
-- Lateral, with a limit: each job is looked up by its key, whatever the planner assumes about the tables.
select r.job_id
from unnest(%(org_ids)s::uuid[], %(job_ids)s::uuid[]) k(org_id, job_id)
cross join lateral (
    select * from duly.job_records r where r.org_id = k.org_id and r.job_id = k.job_id limit 1) r
left join lateral (
    select s.status, s.outcome, s.error_code from duly.state_of(k.org_id, k.job_id) s where %(read_state)s limit 1) s on true
left join lateral (
    select l.fingerprint, l.resolution from duly.dead_letters l
    where %(read_dead_letter)s and l.org_id = k.org_id and l.job_id = k.job_id limit 1) l on true
where (%(job_type)s::text is null or r.job_type = %(job_type)s)
  and (%(type_prefix)s::text is null or starts_with(r.job_type, %(type_prefix)s))
  and not (%(without_system_jobs)s and starts_with(r.job_type, 'duly.'))
  and (%(queue)s::text is null or r.queue = %(queue)s)
  and (%(subject_id)s::text is null or r.subject_id = %(subject_id)s)
  and (%(created_after)s::timestamptz is null or r.created_at >= %(created_after)s)
  and (%(created_before)s::timestamptz is null or r.created_at < %(created_before)s)
  and (%(metadata)s::jsonb is null or not exists (
      select from jsonb_each_text(%(metadata)s::jsonb) m where r.metadata ->> m.key is distinct from m.value))
  and (%(any_status)s or coalesce(s.status, 'queued') = any (%(statuses)s))
  and (%(outcome)s::text is null or coalesce(s.outcome, 'pending') = %(outcome)s)
  and (%(error_code)s::text is null or s.error_code = %(error_code)s)
  and (%(fingerprint)s::text is null or l.fingerprint = %(fingerprint)s)
  and (not %(open_dead_letter)s or (l.fingerprint is not null and l.resolution is null))
  and (%(payload)s::jsonb is null or not exists (
      select from jsonb_to_recordset(%(payload)s::jsonb) p(path text[], value text)
      where case jsonb_typeof(r.payload #> p.path) when 'null' then 'null' when 'object' then null when 'array' then null
            else r.payload #>> p.path end is distinct from p.value))
