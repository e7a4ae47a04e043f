-- Purpose: somebody who has left is told nothing more in the product. Index: the primary key,
-- by its org.
delete from duly.subscriptions
where org_id = %(org_id)s and channel = 'in_app' and recipient in (%(user_id)s, 'user:' || %(user_id)s)
