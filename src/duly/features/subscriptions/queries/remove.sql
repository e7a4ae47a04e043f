-- Purpose: end a subscription. Index: the primary key.
delete from duly.subscriptions where org_id = %(org_id)s and subscription_id = %(subscription_id)s
returning *
