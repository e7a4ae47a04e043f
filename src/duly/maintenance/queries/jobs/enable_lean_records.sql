-- Purpose: switch on the plain path and lean records, unless a worker that does not know them was alive in the last
-- minutes, and move up to `limit` idempotency keys to their new table first.
-- Locks: an advisory one, against workers that register at the same moment; the moved keys.
-- Index: workers are few; the primary key of the old ledger.
select duly.enable_lean_records(%(limit)s)
