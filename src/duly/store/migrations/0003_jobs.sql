-- A job is split: an immutable record, a thin mutable state, and a row in `ready` or `scheduled`
-- while it waits. Records and states are partitioned by their time-ordered id.

create table duly.queues (
    queue text primary key check (queue ~ '^q:[a-z][a-z0-9_-]{0,47}$'),
    weight smallint not null default 1 check (weight > 0),
    paused_at timestamptz,
    paused_by text,
    pause_reason text,
    created_at timestamptz not null default duly.now()
);

insert into duly.queues (queue, weight) values
    ('q:critical', 8), ('q:default', 4), ('q:notifications', 2), ('q:planning', 2),
    ('q:exports', 2), ('q:maintenance', 1), ('q:deadletter', 1);

create table duly.job_records (
    org_id uuid not null,
    job_id uuid not null,
    result_id uuid not null,
    job_type text not null check (job_type <> ''),
    category text not null,
    queue text not null,
    priority smallint not null,
    max_attempts smallint not null check (max_attempts > 0),
    project_id uuid,
    subject_id text,
    actor_type text not null check (actor_type in ('user', 'api_key', 'system', 'worker', 'operator')),
    actor_id text not null check (actor_id <> ''),
    request_id text not null check (request_id <> ''),
    correlation_id text not null check (correlation_id <> ''),
    traceparent text,
    idempotency_key text not null check (idempotency_key <> ''),
    run_identity_hash text,
    payload jsonb not null check (jsonb_typeof(payload) = 'object'),
    payload_ref text,
    payload_hash text not null,
    policy jsonb not null,
    metadata jsonb,
    scheduled_for timestamptz,
    run_at timestamptz not null,
    replay_of uuid,
    parent_id uuid,
    created_at timestamptz not null,
    primary key (org_id, job_id),
    foreign key (org_id, project_id) references duly.projects
) partition by range (job_id);

create index job_records_by_result on duly.job_records (org_id, result_id);
create index job_records_by_subject on duly.job_records (org_id, subject_id, job_id) where subject_id is not null;

-- Made by the first claim, cancel or retry; before that a job is queued, attempt 0, event 1.
create table duly.job_states (
    org_id uuid not null,
    job_id uuid not null,
    status text not null check (status in ('queued', 'running', 'partial', 'completed', 'failed', 'canceled')),
    outcome text not null,
    attempt integer not null default 0,
    returned integer not null default 0,
    event_seq integer not null default 1,
    result_seq integer not null default 0,
    partial_count integer not null default 0,
    error_count integer not null default 0,
    progress_percent real not null default 0 check (progress_percent between 0 and 100),
    run_at timestamptz not null,
    worker_id uuid,
    attempt_started_at timestamptz,
    started_at timestamptz,
    finished_at timestamptz,
    updated_at timestamptz not null,
    cancel_requested_at timestamptz,
    canceled_by text check (canceled_by in ('user', 'system', 'worker')),
    cancel_reason text,
    retryable boolean,
    error_code text,
    error_class text,
    error_message text,
    summary_counts jsonb,
    failure_summary jsonb,
    context jsonb,
    primary key (org_id, job_id),
    check (
        (status in ('queued', 'running', 'partial') and outcome = 'pending' and finished_at is null)
        or (status = 'completed' and outcome in ('succeeded', 'partially_succeeded') and finished_at is not null
            and progress_percent = 100)
        or (status = 'failed' and outcome in ('failed', 'blocked', 'dead') and finished_at is not null
            and error_code is not null and error_message is not null and retryable is not null)
        or (status = 'canceled' and outcome = 'canceled' and finished_at is not null
            and canceled_by is not null and cancel_reason is not null)
    )
) partition by range (job_id);

-- Only ended jobs are indexed by status: the updates of a living job stay heap-only.
create index job_states_ended on duly.job_states (org_id, status, finished_at desc) where finished_at is not null;

-- The runnable jobs and nothing else; the primary key is the order of claims.
create table duly.ready (
    queue text not null,
    org_id uuid not null,
    rank smallint not null,
    job_id uuid not null,
    primary key (queue, org_id, rank, job_id)
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);

-- The jobs of the future; the primary key is the order of promotion.
create table duly.scheduled (
    run_at timestamptz not null,
    org_id uuid not null,
    job_id uuid not null,
    queue text not null,
    rank smallint not null,
    primary key (run_at, org_id, job_id)
);

-- One active run per identity.
create table duly.active_runs (
    org_id uuid not null,
    job_type text not null,
    run_identity_hash text not null,
    job_id uuid not null,
    primary key (org_id, job_type, run_identity_hash)
);

-- Deduplication over time; outlives the job. Its status is read from the job until the job is pruned.
create table duly.ledger (
    org_id uuid not null,
    idempotency_key text not null,
    job_id uuid not null,
    first_seen_at timestamptz not null,
    last_seen_at timestamptz not null,
    expires_at timestamptz not null,
    final_status text check (final_status in ('succeeded', 'failed', 'dead')),
    result_ref text,
    error_ref text,
    primary key (org_id, idempotency_key)
);
-- Rows arrive in the order of time: a block range index finds the expired ones at no cost to the writers.
create index ledger_expiry on duly.ledger using brin (expires_at);

create table duly.workers (
    worker_id uuid primary key,
    name text not null,
    host text not null,
    pid integer not null,
    version text not null,
    queues text[] not null,
    slots integer not null check (slots > 0),
    lease interval not null check (lease > interval '0'),
    started_at timestamptz not null default duly.now(),
    heartbeat_at timestamptz not null default duly.now(),
    draining_at timestamptz,
    stopped_at timestamptz
) with (fillfactor = 50);

-- One row per claimed batch: the jobs of a lost worker are found without an index on their states.
create table duly.claims (
    claim_id uuid primary key,
    worker_id uuid not null,
    claimed_at timestamptz not null,
    org_ids uuid[] not null,
    job_ids uuid[] not null,
    check (cardinality(org_ids) = cardinality(job_ids))
);
create index claims_by_worker on duly.claims (worker_id);
