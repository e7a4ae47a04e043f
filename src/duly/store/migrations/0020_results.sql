-- A final result is found by its job, of which there is one; the longer key did the same work twice.
-- Writers of partial results wait for the index, and nobody else: that is why it has a migration of its own.
create unique index result_partials_key on duly.result_partials (org_id, job_id, result_seq);
alter table duly.result_snapshots drop constraint result_snapshots_pkey;
