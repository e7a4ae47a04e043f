-- name: add
-- Purpose: suppress a recipient; no row if it is suppressed already. Index: the primary key.
insert into duly.notification_suppressions (org_id, channel, recipient, reason, created_by)
values (%(org_id)s, %(channel)s, %(recipient)s, %(reason)s, %(created_by)s)
on conflict (org_id, channel, recipient) do nothing
returning *

-- name: list
-- Purpose: read the suppressed recipients of an org by channel and recipient. Index: the primary key.
select * from duly.notification_suppressions
where org_id = %(org_id)s and (channel, recipient) > (%(channel)s, %(recipient)s)
order by channel, recipient
limit %(limit)s

-- name: read
-- Purpose: read the suppression of a recipient. Index: the primary key.
select * from duly.notification_suppressions
where org_id = %(org_id)s and channel = %(channel)s and recipient = %(recipient)s

-- name: remove
-- Purpose: end the suppression of a recipient and return the row. Index: the primary key.
delete from duly.notification_suppressions
where org_id = %(org_id)s and channel = %(channel)s and recipient = %(recipient)s
returning *
