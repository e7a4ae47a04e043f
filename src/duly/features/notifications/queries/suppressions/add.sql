-- Purpose: send nothing to a recipient any more; one to whom nothing is sent already stays as it is. Index: the primary key.
insert into duly.notification_suppressions (org_id, channel, recipient, reason, created_by)
values (%(org_id)s, %(channel)s, %(recipient)s, %(reason)s, %(created_by)s)
on conflict (org_id, channel, recipient) do nothing
returning *
