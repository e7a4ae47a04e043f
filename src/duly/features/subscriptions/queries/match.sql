-- Purpose: who wants to be told of these ends of jobs, and what there is to say. A job that died has failed, too: whoever
-- asked for either is told, once. Of Duly's own jobs nobody is told. With `only`, of one subscription, since ever.
-- Index: the primary keys of the jobs, then subscriptions_of_job and subscriptions_wide.
select s.org_id, s.subscription_id, s.channel, s.recipient, s.locale, s.created_by,
       r.job_id, r.job_type, r.subject_id, t.status, t.outcome, t.error_code, t.finished_at, how.ended
from unnest(%(org_ids)s::uuid[], %(job_ids)s::uuid[], %(xids)s::text[]) as e(org_id, job_id, xid)
join duly.job_records r on r.org_id = e.org_id and r.job_id = e.job_id
join duly.job_states t on t.org_id = e.org_id and t.job_id = e.job_id and t.finished_at is not null
cross join lateral (select case when t.outcome = 'dead' then 'dead' else t.status end as ended) how
cross join lateral (
    select o.* from duly.subscriptions o where o.org_id = e.org_id and o.job_id = e.job_id
    union all
    select w.* from duly.subscriptions w
    where w.org_id = e.org_id and w.job_id is null and (w.job_type is null or w.job_type = r.job_type)
) s
where r.job_type not like 'duly.%%'
  and (how.ended = any (s.outcomes) or how.ended = 'dead' and 'failed' = any (s.outcomes))
  and case when %(only)s::uuid is null then e.xid::xid8 >= s.since_xid else s.subscription_id = %(only)s end
