-- Purpose: a callback failed: remember why, and when to try again. Index: the primary key.
update duly.bridge_debts d set
    tries = d.tries + 1, last_error = %(error)s,
    due_at = duly.now() + least(interval '5 seconds' * power(2, least(d.tries, 10)), interval '10 minutes')
where d.org_id = %(org_id)s and d.job_id = %(job_id)s
