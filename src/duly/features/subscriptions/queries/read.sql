-- Purpose: one subscription of an org. Index: the primary key.
select * from duly.subscriptions where org_id = %(org_id)s and subscription_id = %(subscription_id)s
