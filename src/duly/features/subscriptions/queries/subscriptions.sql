-- name: create
-- Purpose: create a subscription to the events that commit from now on.
insert into duly.subscriptions (
    org_id, subscription_id, job_id, job_type, outcomes, channel, recipient, locale, created_by)
values (
    %(org_id)s, duly.uuid7(), %(job_id)s, %(job_type)s, %(outcomes)s, %(channel)s, %(recipient)s, %(locale)s, %(created_by)s)
returning *

-- name: read
-- Purpose: read a subscription of an org. Index: the primary key.
select * from duly.subscriptions where org_id = %(org_id)s and subscription_id = %(subscription_id)s

-- name: find
-- Purpose: find a subscription with the same values. Index: subscriptions_of_job, or subscriptions_wide.
select * from duly.subscriptions s
where s.org_id = %(org_id)s and s.job_id is not distinct from %(job_id)s and s.job_type is not distinct from %(job_type)s
  and s.channel = %(channel)s and s.recipient = %(recipient)s and s.outcomes = %(outcomes)s and s.locale = %(locale)s
limit 1

-- name: count
-- Purpose: count the subscriptions of a job, or those of an org without a job, and those of them by the same creator.
-- Index: subscriptions_of_job, or subscriptions_wide.
select count(*) as subscriptions, count(*) filter (where s.created_by = %(created_by)s) as own
from (
    select w.created_by from duly.subscriptions w
    where %(job_id)s::uuid is null and w.org_id = %(org_id)s and w.job_id is null
    union all
    select o.created_by from duly.subscriptions o where o.org_id = %(org_id)s and o.job_id = %(job_id)s
) s

-- name: list
-- Purpose: list the subscriptions of an org, newest first; or those by or for one actor.
-- Index: the primary key backwards, or subscriptions_of_job.
select * from duly.subscriptions s
where s.org_id = %(org_id)s
  and (%(before)s::uuid is null or s.subscription_id < %(before)s)
  and (%(job_id)s::uuid is null or s.job_id = %(job_id)s)
  and (%(created_by)s::text is null or s.created_by = %(created_by)s
       or s.channel = 'in_app' and s.recipient = %(user_id)s)
order by s.subscription_id desc
limit %(limit)s

-- name: match
-- Purpose: find the subscriptions to these ended jobs, and the values of their notifications. A dead letter has failed,
-- too: a subscription to either outcome matches once. System jobs have no subscribers. With `only`, one subscription,
-- however old the event is.
-- Index: the primary keys of the jobs, then subscriptions_of_job and subscriptions_wide.
select s.org_id, s.subscription_id, s.channel, s.recipient, s.locale, s.created_by,
       r.job_id, r.job_type, r.subject_id, t.status, t.outcome, t.error_code, t.finished_at, how.ended
from unnest(%(org_ids)s::uuid[], %(job_ids)s::uuid[], %(xids)s::text[]) as e(org_id, job_id, xid)
join duly.job_records r on r.org_id = e.org_id and r.job_id = e.job_id
cross join lateral (
    select x.* from duly.state_of(e.org_id, e.job_id) x where x.finished_at is not null limit 1) t
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

-- name: mark_notified
-- Purpose: record that the recipients were notified. Index: the primary key.
-- Locks: the subscriptions, in the order of their keys, so that two relays do not deadlock.
update duly.subscriptions s set told_at = duly.now()
from (
    select k.org_id, k.subscription_id
    from unnest(%(org_ids)s::uuid[], %(subscription_ids)s::uuid[]) as k(org_id, subscription_id)
    join duly.subscriptions x on x.org_id = k.org_id and x.subscription_id = k.subscription_id
    order by x.org_id, x.subscription_id
    for update of x
) k
where s.org_id = k.org_id and s.subscription_id = k.subscription_id

-- name: delete
-- Purpose: delete a subscription. Index: the primary key.
delete from duly.subscriptions where org_id = %(org_id)s and subscription_id = %(subscription_id)s
returning *

-- name: delete_of_user
-- Purpose: delete the in-app subscriptions of a user who left the org. Index: the primary key, by its org.
delete from duly.subscriptions
where org_id = %(org_id)s and channel = 'in_app' and recipient in (%(user_id)s, 'user:' || %(user_id)s)
