-- Purpose: jobs whose time has come and whom nobody has made ready, by queue; the oldest thousand are looked at.
-- Index: the head of scheduled.
select o.queue, count(*) as jobs, duly.now() - min(o.run_at) as late
from (select s.queue, s.run_at from duly.scheduled s
      where s.run_at < duly.now() - %(patience)s::interval order by s.run_at limit 1000) o
group by o.queue order by 1
