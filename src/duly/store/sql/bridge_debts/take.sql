-- Purpose: pay one debt: whoever gets the row has the callback to run, in this transaction.
-- Locks: the debt, which another payer may hold; then there is nothing to pay. Index: the primary key.
delete from duly.bridge_debts d using (
    select b.org_id, b.job_id from duly.bridge_debts b
    where b.org_id = %(org_id)s and b.job_id = %(job_id)s for update skip locked
) owed
where d.org_id = owed.org_id and d.job_id = owed.job_id
returning d.tries
