-- Purpose: forget the secrets of an endpoint that sign no longer; how many others there are. Index: the primary key.
with gone as (
    delete from duly.webhook_secrets
    where org_id = %(org_id)s and endpoint_id = %(endpoint_id)s and expires_at <= duly.now()
)
select count(*) as secrets from duly.webhook_secrets
where org_id = %(org_id)s and endpoint_id = %(endpoint_id)s and (expires_at is null or expires_at > duly.now())
