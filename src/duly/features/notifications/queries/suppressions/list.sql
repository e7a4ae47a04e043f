-- Purpose: the next recipients to whom an org sends nothing. Index: the primary key.
select * from duly.notification_suppressions
where org_id = %(org_id)s and (channel, recipient) > (%(channel)s, %(recipient)s)
order by channel, recipient
limit %(limit)s
