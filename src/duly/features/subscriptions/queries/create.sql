-- Purpose: keep a subscription; it is told of what commits from now on.
insert into duly.subscriptions (
    org_id, subscription_id, job_id, job_type, outcomes, channel, recipient, locale, created_by)
values (
    %(org_id)s, duly.uuid7(), %(job_id)s, %(job_type)s, %(outcomes)s, %(channel)s, %(recipient)s, %(locale)s, %(created_by)s)
returning *
