-- Purpose: write the final status of old jobs to the live keys that point to them, so that the jobs can go.
-- The view derives what a key answers; afterwards the key knows it by itself. An ended job never changes.
-- Locks: rows of the ledger, skipping what an enqueue holds. Index: primary keys, one look per key.
with due as materialized (
    select l.org_id, l.idempotency_key, k.status, k.result_ref, k.error_ref
    from duly.ledger l
    join duly.job_states s on s.org_id = l.org_id and s.job_id = l.job_id and s.finished_at is not null
    join duly.idempotency_keys k on k.org_id = l.org_id and k.idempotency_key = l.idempotency_key
    where l.job_id < duly.uuid7_floor(duly.now() - %(keep)s::interval)
      and l.final_status is null and l.expires_at > duly.now()
    limit %(limit)s
    for update of l skip locked
)
update duly.ledger l set final_status = d.status, result_ref = d.result_ref, error_ref = d.error_ref
from due d where l.org_id = d.org_id and l.idempotency_key = d.idempotency_key
