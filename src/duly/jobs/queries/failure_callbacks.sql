-- name: list_due
-- Purpose: the pending callbacks that are due, of job types that this process declares, oldest first. Index: bridge_debts_due.
select d.org_id, d.job_id, d.job_type from duly.bridge_debts d
where d.due_at <= duly.now() and d.job_type = any (%(job_types)s)
order by d.due_at limit %(limit)s

-- name: claim
-- Purpose: claim one pending callback, to run it in this transaction.
-- Locks: the pending callback; when another transaction holds it, no row is returned. Index: the primary key.
delete from duly.bridge_debts d using (
    select b.org_id, b.job_id from duly.bridge_debts b
    where b.org_id = %(org_id)s and b.job_id = %(job_id)s for update skip locked
) owed
where d.org_id = owed.org_id and d.job_id = owed.job_id
returning d.tries

-- name: postpone
-- Purpose: record why a callback failed, and when to run it again. Index: the primary key.
update duly.bridge_debts d set
    tries = d.tries + 1, last_error = %(error)s,
    due_at = duly.now() + least(interval '5 seconds' * power(2, least(d.tries, 10)), interval '10 minutes')
where d.org_id = %(org_id)s and d.job_id = %(job_id)s
