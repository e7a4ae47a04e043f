-- Purpose: what some held messages say, where they go, and what signs them. The event as it was; of its job only what never
-- changes, and how it ended if this event says that it did. Index: the primary keys.
select k.place, p.url, e.event_seq, e.status, e.attempt, e.occurred_at,
       r.job_type, r.project_id, r.subject_id, r.request_id, r.correlation_id,
       nullif(split_part(r.traceparent, '-', 2), '') as trace_id, r.result_id, coalesce(t.outcome, 'pending') as outcome,
       coalesce(t.error_code, e.payload ->> 'error_code') as error_code, coalesce(t.partial_count, 0) as partial_count,
       array(select s.secret from duly.webhook_secrets s
             where s.org_id = k.org_id and s.endpoint_id = k.endpoint_id and (s.expires_at is null or s.expires_at > duly.now())
             order by s.secret_id desc) as secrets
from unnest(%(org_ids)s::uuid[], %(endpoint_ids)s::uuid[], %(job_ids)s::uuid[], %(seqs)s::integer[])
    with ordinality as k(org_id, endpoint_id, job_id, event_seq, place)
join duly.webhook_endpoints p on p.org_id = k.org_id and p.endpoint_id = k.endpoint_id
left join duly.event_log e on e.org_id = k.org_id and e.job_id = k.job_id and e.event_seq = k.event_seq
left join duly.job_records r on r.org_id = e.org_id and r.job_id = e.job_id
left join duly.job_states t on e.status in ('completed', 'failed', 'canceled') and t.org_id = e.org_id and t.job_id = e.job_id
