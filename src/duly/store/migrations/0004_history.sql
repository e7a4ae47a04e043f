-- What happened: events, results, dead letters, artifacts, schedules and the audit trail.

create table duly.event_log (
    org_id uuid not null,
    job_id uuid not null,
    event_seq integer not null check (event_seq > 0),
    event_type text not null,
    status text not null,
    attempt integer not null,
    occurred_at timestamptz not null,
    actor_type text not null,
    actor_id text not null,
    payload jsonb,
    -- Feeds order by the transaction that committed, never by a sequence that others may overtake.
    commit_xid xid8 not null default pg_current_xact_id(),
    primary key (org_id, job_id, event_seq)
) partition by range (job_id);
-- Frequent events are found by time alone; the rare ones, which people look for, by their type.
create index event_log_by_time on duly.event_log using brin (occurred_at);
create index event_log_rare on duly.event_log (event_type, occurred_at) where event_type in (
    'job.retried', 'job.failed', 'job.deadlettered', 'job.cancel_requested', 'job.canceled', 'job.lease_lost',
    'job.reconciled', 'job.replayed');
create index event_log_by_commit on duly.event_log (commit_xid);

-- Partial and final snapshots are kept for different times, so they lie in different partitions.
create table duly.result_snapshots (
    org_id uuid not null,
    job_id uuid not null,
    result_kind text not null check (result_kind in ('partial', 'final')),
    result_seq integer not null check (result_seq > 0),
    schema_version integer not null default 1,
    chunk_key text,
    payload jsonb,
    payload_ref text,
    summary jsonb,
    created_at timestamptz not null,
    primary key (org_id, job_id, result_kind, result_seq)
) partition by list (result_kind);
create table duly.result_partials partition of duly.result_snapshots for values in ('partial') partition by range (job_id);
create table duly.result_finals partition of duly.result_snapshots for values in ('final') partition by range (job_id);
create unique index result_finals_once on duly.result_finals (org_id, job_id);
create index result_snapshots_by_time on duly.result_snapshots using brin (created_at);

create table duly.dead_letters (
    org_id uuid not null,
    job_id uuid not null,
    job_type text not null,
    queue text not null,
    attempts integer not null,
    fingerprint text not null,
    error_code text not null,
    error_class text not null,
    error_message text not null,
    error_context jsonb not null default '{}',
    dead_at timestamptz not null,
    resolution text check (resolution in ('replayed', 'discarded', 'fixed')),
    resolved_at timestamptz,
    resolved_by text,
    resolve_reason text,
    successor_job_id uuid,
    primary key (org_id, job_id),
    check ((resolution is null) = (resolved_at is null))
);
create index dead_letters_open on duly.dead_letters (org_id, fingerprint, dead_at desc) where resolution is null;

create table duly.artifacts (
    org_id uuid not null,
    artifact_id uuid not null,
    job_id uuid not null,
    name text not null,
    content_type text not null,
    blob_ref text not null,
    sha256 text not null,
    size bigint not null check (size >= 0),
    created_at timestamptz not null default duly.now(),
    expires_at timestamptz,
    primary key (org_id, artifact_id),
    unique (org_id, job_id, name)
);

create table duly.schedules (
    org_id uuid not null references duly.organizations,
    schedule_id uuid not null,
    name text not null,
    cron text not null,
    timezone text not null default 'UTC',
    job_type text not null,
    payload jsonb not null default '{}',
    missed_policy text not null default 'once' check (missed_policy in ('skip', 'once', 'all')),
    next_tick_at timestamptz,
    last_tick_at timestamptz,
    paused_at timestamptz,
    created_by text not null,
    created_at timestamptz not null default duly.now(),
    updated_at timestamptz not null default duly.now(),
    primary key (org_id, schedule_id),
    unique (org_id, name)
);
create index schedules_due on duly.schedules (next_tick_at) where paused_at is null;

create table duly.schedule_ticks (
    org_id uuid not null,
    schedule_id uuid not null,
    tick_at timestamptz not null,
    disposition text not null check (disposition in ('enqueued', 'missed')),
    job_id uuid,
    recorded_at timestamptz not null default duly.now(),
    primary key (org_id, schedule_id, tick_at),
    foreign key (org_id, schedule_id) references duly.schedules,
    check ((disposition = 'enqueued') = (job_id is not null))
) partition by range (tick_at);

create table duly.audit_entries (
    org_id uuid not null,
    entry_id uuid not null,
    occurred_at timestamptz not null,
    actor_type text not null,
    actor_id text not null,
    action text not null,
    target_type text not null,
    target_id text not null,
    reason text,
    request_id text,
    correlation_id text,
    detail jsonb not null default '{}',
    primary key (org_id, occurred_at, entry_id)
) partition by range (occurred_at);

create table duly.audit_seals (
    org_id uuid not null,
    seal_seq bigint not null,
    last_occurred_at timestamptz not null,
    last_entry_id uuid not null,
    entry_count bigint not null,
    previous_hash bytea not null,
    hash bytea not null,
    sealed_at timestamptz not null,
    primary key (org_id, seal_seq)
);
