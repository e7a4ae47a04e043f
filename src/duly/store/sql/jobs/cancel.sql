-- Purpose: end a waiting job at once, or ask the worker that holds it.
-- Transition: cancel, queued -> canceled; running and partial only get the request.
-- Events: job.canceled or job.cancel_requested. Locks: the queue row, then the state row.
select duly.cancel(%(org_id)s, %(job_id)s, %(canceled_by)s, %(reason)s, %(actor_type)s, %(actor_id)s)
