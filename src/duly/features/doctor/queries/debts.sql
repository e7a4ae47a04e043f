-- Purpose: callbacks that are owed and were not made in time, by job type: `unpaid` those that nobody tries.
-- Index: debts are few.
select d.job_type, count(*) as debts, count(*) filter (where d.due_at < duly.now() - %(patience)s::interval) as unpaid,
       duly.now() - min(d.owed_at) as age, max(d.last_error) as last_error
from duly.bridge_debts d
where d.due_at < duly.now() - %(patience)s::interval or d.owed_at < duly.now() - %(endurance)s::interval
group by d.job_type order by 4 desc, 1 limit 20
