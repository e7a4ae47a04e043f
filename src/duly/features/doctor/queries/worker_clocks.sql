-- Purpose: how far the clocks of the living workers are off, by their last heartbeat.
select w.name, w.host, w.clock_offset
from duly.workers w
where w.stopped_at is null and w.lost_at is null and w.heartbeat_at + w.lease >= duly.now()
order by w.name, w.worker_id
