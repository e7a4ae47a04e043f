-- Purpose: the events of these jobs that were not relayed yet, up to the last that was found of each. Of two events of a
-- job the earlier may have the later transaction, and lie beyond the look: it is taken along, by going back from the
-- first that was found until one that was relayed. When that one was, so were all before it.
-- Duly's own jobs are told of to nobody. Index: the primary keys; the limits keep the planner from any other.
with job as materialized (
    select k.org_id, k.job_id, k.first_seq, k.last_seq, r.job_type
    from unnest(%(org_ids)s::uuid[], %(job_ids)s::uuid[], %(first_seqs)s::integer[], %(last_seqs)s::integer[])
        as k(org_id, job_id, first_seq, last_seq)
    join duly.job_records r on r.org_id = k.org_id and r.job_id = k.job_id
    where r.job_type not like 'duly.%%'
)
select e.org_id, e.job_id, e.event_seq, e.event_type, e.status, e.attempt,
       coalesce(t.outcome, 'pending') as outcome, t.error_code, j.job_type,
       e.commit_xid::text::bigint as commit_xid, e.occurred_at
from job j
cross join lateral (
    with recursive back as (
        select j.first_seq as event_seq
        union all
        select e.event_seq
        from back b
        cross join lateral (
            select l.* from duly.event_log l
            where l.org_id = j.org_id and l.job_id = j.job_id and l.event_seq = b.event_seq - 1 limit 1
        ) e
        where (e.commit_xid, e.job_id, e.event_seq) > (%(xid)s::xid8, %(mark_job_id)s, %(mark_seq)s)
    )
    select min(b.event_seq) as event_seq from back b
) f
cross join lateral (
    select l.* from duly.event_log l
    where l.org_id = j.org_id and l.job_id = j.job_id and l.event_seq between f.event_seq and j.last_seq offset 0
) e
left join duly.job_states t on e.status in ('completed', 'failed', 'canceled') and t.org_id = e.org_id and t.job_id = e.job_id
where (e.commit_xid, e.job_id, e.event_seq) > (%(xid)s::xid8, %(mark_job_id)s, %(mark_seq)s)
order by e.org_id, e.job_id, e.event_seq
