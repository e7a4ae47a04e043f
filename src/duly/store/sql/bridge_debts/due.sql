-- Purpose: the debts that are due, of job types that this process knows, the oldest first. Index: bridge_debts_due.
select d.org_id, d.job_id, d.job_type from duly.bridge_debts d
where d.due_at <= duly.now() and d.job_type = any (%(job_types)s)
order by d.due_at limit %(limit)s
