-- Purpose: a worker says goodbye. Its claims are empty: it finished or gave back every job. Index: the primary key.
update duly.workers set stopped_at = duly.now() where worker_id = %(worker_id)s and stopped_at is null
