-- Figures: what each queue did in each minute, kinds of dead letters of all orgs, and workers that are asked to drain.

-- One row for a queue, a minute and a process that works: absolute numbers, which it writes again as they grow.
create table duly.queue_minutes (
    minute timestamptz not null,
    queue text not null,
    -- Not the worker: one that was declared lost goes on under another id, and counts on.
    recorder_id uuid not null,
    started integer not null,
    completed integer not null,
    failed integer not null,
    retried integer not null,
    canceled integer not null,
    run_seconds double precision not null,
    -- Histograms: the numbers of the buckets that hold anything, and how much.
    wait_buckets smallint[] not null,
    wait_counts integer[] not null,
    run_buckets smallint[] not null,
    run_counts integer[] not null,
    primary key (minute, queue, recorder_id),
    check (cardinality(wait_buckets) = cardinality(wait_counts) and cardinality(run_buckets) = cardinality(run_counts))
) with (fillfactor = 50);
grant select, insert, update, delete on duly.queue_minutes to duly_engine;

-- The box holds what went wrong for good, which is little.
create index dead_letters_by_kind on duly.dead_letters (fingerprint, dead_at desc) where resolution is null;

-- Heartbeats wait for this.
alter table duly.workers
    add column drain_requested_at timestamptz,
    add column drain_requested_by text,
    add column drain_reason text,
    add check ((drain_requested_at is null) = (drain_requested_by is null));
-- They are remembered for a week.
create index workers_lost on duly.workers (lost_at desc) where stopped_at is null and lost_at is not null;
