-- Purpose: read a job of the session's org with its origin, its first and last events, its last log lines, the heads of its
-- last partial results with the values of those to compare (by default the last two), and its dead letter.
-- Index: primary keys. Events and partial results are numbered without gaps, so that the numbers of the last ones are known.
-- Materialized, because behind row level security a bound that is still to be computed is not looked up in an index.
with j as materialized (
    select org_id, job_id, result_id, job_type, category, queue, priority, project_id, subject_id, actor_type, actor_id,
           request_id, correlation_id, traceparent, idempotency_key, run_identity_hash, request_payload_hash,
           request_payload_ref, status, outcome, attempt, fence, max_attempts, progress_percent, partial_count, error_count,
           summary_counts, failure_summary, created_at, run_at, started_at, finished_at, updated_at, cancel_requested_at,
           canceled_at, canceled_by, cancel_reason, failed_at, retryable, error_code, error_class, error_message, replay_of,
           attempt_started_at, reconciliations, scheduled_for, parent_id, metadata, payload,
           greatest(%(first)s, event_seq - %(last)s) as events_after, partial_count - %(partial_results)s as partials_after,
           greatest(fence - %(attempts)s, 1) as first_attempt,
           case when metadata ->> 'schedule_id' ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
                then (metadata ->> 'schedule_id')::uuid end as schedule_id
    from duly.jobs where org_id = %(org_id)s and job_id = %(job_id)s
)
select j.*,
       (select to_jsonb(c) from (
            select c.schedule_id, c.name from duly.schedules c
            where c.org_id = j.org_id and c.schedule_id = j.schedule_id) c) as schedule,
       (select to_jsonb(l) from (
            select l.fingerprint, l.error_context, l.resolution, l.resolved_at, l.resolved_by, l.resolve_reason, l.successor_job_id
            from duly.dead_letters l where l.org_id = j.org_id and l.job_id = j.job_id) l) as dead_letter,
       (select coalesce(jsonb_agg(to_jsonb(e) order by e.event_seq), '[]') from (
            select * from duly.events_of(j.org_id, j.job_id) e where e.event_seq <= %(first)s
            union all
            select * from duly.events_of(j.org_id, j.job_id) e where e.event_seq > j.events_after) e) as events,
       (select coalesce(jsonb_agg(to_jsonb(g) order by g.attempt, g.line_seq), '[]') from (
            select g.attempt, g.line_seq, g.logged_at, g.level, g.message, coalesce(g.fields, '{}') as fields
            from duly.job_logs g where g.org_id = j.org_id and g.job_id = j.job_id
            order by g.attempt desc, g.line_seq desc limit %(log_lines)s) g) as log_lines,
       (select coalesce(jsonb_agg(jsonb_build_object('attempt', g.attempt, 'at', g.logged_at,
            'outcome', coalesce(g.fields ->> 'outcome', '')) order by g.attempt), '[]')
        from generate_series(j.first_attempt, j.fence) a(n)
        join duly.job_logs g on g.org_id = j.org_id and g.job_id = j.job_id and g.attempt = a.n
             and g.line_seq = %(refused)s) as refusals,
       (select coalesce(jsonb_agg(to_jsonb(p) order by p.result_seq), '[]') from (
            select p.result_kind, p.result_seq, p.chunk_key, p.created_at, p.payload_ref is not null as large,
                   case when p.result_seq = any (%(compared)s::integer[])
                        or (cardinality(%(compared)s::integer[]) = 0 and p.result_seq > j.partial_count - 2)
                        then p.payload end as payload
            from duly.result_snapshots p
            where p.org_id = j.org_id and p.job_id = j.job_id and p.result_kind = 'partial'
              and p.result_seq > j.partials_after) p) as partial_results
from j
