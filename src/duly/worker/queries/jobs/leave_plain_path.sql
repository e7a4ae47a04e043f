-- Purpose: give jobs of the plain path the state row and the started event that they would have had from the start.
-- Transition: none. Locks: their claims in the order of their ids. Index: primary keys.
select duly.leave_plain_path(%(claim_ids)s::uuid[], %(org_ids)s::uuid[], %(job_ids)s::uuid[])
