-- Purpose: give a running job of the plain path its state row, whichever worker holds it.
-- Transition: none. Locks: its claim. Index: claims are few; primary keys.
select duly.leave_plain_path(%(org_id)s::uuid, %(job_id)s::uuid)
