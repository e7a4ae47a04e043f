-- Purpose: move due jobs from scheduled to ready, by the database's clock.
-- Transition: none; the job stays queued. Locks: rows of scheduled, skipping those that others lock.
-- Index: the primary key of scheduled is the order of promotion. Only a job type with a gate needs its record read.
with due as materialized (
    select s.ctid as row_id from duly.scheduled s
    where s.run_at <= duly.now() order by s.run_at limit %(limit)s for update skip locked
), moved as (
    -- By ctid, as in `claim`.
    delete from duly.scheduled s where s.ctid = any (array(select d.row_id from due d)) returning s.*
)
insert into duly.ready (queue, org_id, rank, job_id)
select m.queue || coalesce('#' || l.job_type, ''), m.org_id, m.rank, m.job_id
from moved m
left join duly.job_records r on r.org_id = m.org_id and r.job_id = m.job_id and exists (select from duly.lanes)
left join duly.lanes l on l.job_type = r.job_type
