-- Purpose: some events of the session's org by their keys, in the order of the keys. Index: the primary keys.
select e.*,
       (select r.subject_id from duly.job_records r where r.org_id = %(org_id)s and r.job_id = e.job_id) as subject_id
from unnest(%(job_ids)s::uuid[], %(seqs)s::integer[]) with ordinality k(job_id, event_seq, n)
cross join lateral (
    select v.* from duly.job_events v
    where v.org_id = %(org_id)s and v.job_id = k.job_id and v.event_seq = k.event_seq
) e
order by k.n
