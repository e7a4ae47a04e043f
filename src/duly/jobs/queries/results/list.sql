-- Purpose: the next result snapshots of a job in order, the final one last; with their values up to `bytes` in total. Index: result_partials_key, result_finals_once. Reads `limit` rows at most.
with page as materialized (
    (select p.* from duly.all_results p
     where p.org_id = %(org_id)s and p.job_id = %(job_id)s and p.result_kind = 'partial' and p.result_seq > %(after)s
     order by p.result_seq limit %(limit)s)
    union all
    (select f.* from duly.all_results f
     where f.org_id = %(org_id)s and f.job_id = %(job_id)s and f.result_kind = 'final' and f.result_seq > %(after)s)
    order by result_seq limit %(limit)s
), sized as (
    select p.*, coalesce(sum(octet_length(p.payload::text)) over (order by p.result_seq), 0) as bytes from page p
)
select s.result_kind, s.result_seq, s.chunk_key, case when s.bytes <= %(bytes)s then s.payload end as payload,
       s.payload_ref is not null or s.bytes > %(bytes)s as large, s.summary, s.created_at
from sized s
order by s.result_seq
