-- name: create
-- Purpose: keep a subscription; it is told of what commits from now on.
insert into duly.subscriptions (
    org_id, subscription_id, job_id, job_type, outcomes, channel, recipient, locale, created_by)
values (
    %(org_id)s, duly.uuid7(), %(job_id)s, %(job_type)s, %(outcomes)s, %(channel)s, %(recipient)s, %(locale)s, %(created_by)s)
returning *

-- name: end_of
-- Purpose: somebody who has left is told nothing more in the product. Index: the primary key,
-- by its org.
delete from duly.subscriptions
where org_id = %(org_id)s and channel = 'in_app' and recipient in (%(user_id)s, 'user:' || %(user_id)s)

-- name: find
-- Purpose: the same subscription, if there is one. Index: subscriptions_of_job, or subscriptions_wide.
select * from duly.subscriptions s
where s.org_id = %(org_id)s and s.job_id is not distinct from %(job_id)s and s.job_type is not distinct from %(job_type)s
  and s.channel = %(channel)s and s.recipient = %(recipient)s and s.outcomes = %(outcomes)s and s.locale = %(locale)s
limit 1

-- name: read
-- Purpose: one subscription of an org. Index: the primary key.
select * from duly.subscriptions where org_id = %(org_id)s and subscription_id = %(subscription_id)s

-- name: remove
-- Purpose: end a subscription. Index: the primary key.
delete from duly.subscriptions where org_id = %(org_id)s and subscription_id = %(subscription_id)s
returning *
