-- Purpose: switch on the plain path unless a worker that does not know it was alive in the last minutes.
-- Locks: an advisory one, against workers that register at the same moment. Index: workers are few.
select duly.enable_plain_path()
