-- Purpose: record what became of ticks: the job that was enqueued, or none if it was missed.
-- The primary key lets a tick be recorded once, however many schedulers there are.
insert into duly.schedule_ticks (org_id, schedule_id, tick_at, disposition, job_id, recorded_at)
select %(org_id)s, %(schedule_id)s, t.tick_at,
       case when t.job_id is null then 'missed' else 'enqueued' end, t.job_id, duly.now()
from unnest(%(ticks)s::timestamptz[], %(job_ids)s::uuid[]) as t(tick_at, job_id)
