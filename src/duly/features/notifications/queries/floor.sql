-- Purpose: where a look at so many notifications of an org before a place ends; nothing if there are fewer.
-- Index: the primary key backwards.
select n.notification_id from duly.notifications n
where n.org_id = %(org_id)s and n.notification_id < %(before)s
order by n.notification_id desc
offset %(look)s - 1 limit 1
