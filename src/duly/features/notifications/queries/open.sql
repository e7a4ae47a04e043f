-- Purpose: one notification that is still to be told, with what its recipient wants. Index: the primary keys.
select n.*,
       (select s.reason from duly.notification_suppressions s
        where s.org_id = n.org_id and s.channel = n.channel and s.recipient = n.recipient) as suppressed_for,
       coalesce((select p.wanted from duly.notification_preferences p
                 where p.org_id = n.org_id and p.channel = n.channel and p.recipient = n.recipient
                   and p.template_key in (n.template_key, '')
                 order by p.template_key desc limit 1), true) as wanted,
       (select r.subject_id from duly.job_records r where r.org_id = n.org_id and r.job_id = n.job_id) as about
from duly.notifications n
where n.org_id = %(org_id)s and n.notification_id = %(notification_id)s and n.delivery_status = 'pending'
