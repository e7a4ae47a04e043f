-- Purpose: how many workers live, and how long ago the last one was heard of. Workers are few.
select count(*) filter (
           where w.stopped_at is null and w.lost_at is null and w.heartbeat_at + w.lease >= duly.now()) as workers,
       duly.now() - max(greatest(w.heartbeat_at, w.stopped_at)) as silence
from duly.workers w
