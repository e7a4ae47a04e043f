-- name: add
-- Purpose: send nothing to a recipient any more; one to whom nothing is sent already stays as it is. Index: the primary key.
insert into duly.notification_suppressions (org_id, channel, recipient, reason, created_by)
values (%(org_id)s, %(channel)s, %(recipient)s, %(reason)s, %(created_by)s)
on conflict (org_id, channel, recipient) do nothing
returning *

-- name: list
-- Purpose: the next recipients to whom an org sends nothing. Index: the primary key.
select * from duly.notification_suppressions
where org_id = %(org_id)s and (channel, recipient) > (%(channel)s, %(recipient)s)
order by channel, recipient
limit %(limit)s

-- name: read
-- Purpose: why nothing is sent to a recipient. Index: the primary key.
select * from duly.notification_suppressions
where org_id = %(org_id)s and channel = %(channel)s and recipient = %(recipient)s

-- name: remove
-- Purpose: send to a recipient again. Index: the primary key.
delete from duly.notification_suppressions
where org_id = %(org_id)s and channel = %(channel)s and recipient = %(recipient)s
returning *
