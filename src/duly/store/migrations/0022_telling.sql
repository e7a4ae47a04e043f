-- Seeing and telling: lines that handlers log, webhooks, notifications, alerts, and who may write to the audit trail only.

-- Who computes what a change says may append to the audit trail of an org, and do nothing else.
reset role;
do $$
begin
    if not exists (select from pg_catalog.pg_roles where rolname = 'duly_auditor') then
        create role duly_auditor nologin noinherit;
    end if;
exception when duplicate_object or unique_violation then
    null;  -- another database of the cluster has just made it
end $$;
do $$
begin
    -- Whoever may work as the engine may put on less.
    if not pg_has_role('duly_engine', 'duly_auditor', 'member') then
        grant duly_auditor to duly_engine;
    end if;
end $$;
set local role duly_owner;
grant usage on schema duly to duly_auditor;
grant select, insert on duly.audit_entries to duly_auditor;
create policy auditor_appends on duly.audit_entries to duly_auditor
    using (org_id = (select duly.current_org())) with check (org_id = (select duly.current_org()));
grant execute on function duly.now(), duly.current_org(), duly.uuid7(), duly.uuid7_floor(timestamptz) to duly_auditor;

-- What handlers log about a job: bounded for each attempt by who writes it, kept as long as events.
create table duly.job_logs (
    org_id uuid not null,
    job_id uuid not null,
    attempt integer not null,
    line_seq integer not null check (line_seq > 0),
    logged_at timestamptz not null,
    level text not null check (level in ('debug', 'info', 'warning', 'error', 'critical')),
    message text not null,
    fields jsonb,
    primary key (org_id, job_id, attempt, line_seq)
) partition by range (job_id);
insert into duly.partitioned_tables (parent, key_column, key_kind, step, ahead, storage, dated_in, dated_by, names_blobs)
values ('job_logs', 'job_id', 'uuid7', 'week', 8, '', 'job_logs', 'logged_at', false);
create table duly.job_logs_default partition of duly.job_logs default;
select duly.lock_partition('job_logs_default');
select duly.isolate('duly.job_logs');
grant select on duly.job_logs to duly_tenant, duly_operator;
grant select, insert on duly.job_logs to duly_engine;

-- Where an org wants to be told of events. Null or empty filters mean all.
create table duly.webhook_endpoints (
    org_id uuid not null references duly.organizations,
    endpoint_id uuid not null,
    url text not null,
    description text not null default '',
    event_types text[] not null,
    job_types text[],
    -- The oldest transaction that was open when the endpoint was made: what commits later is not older.
    since_xid xid8 not null default pg_snapshot_xmin(pg_current_snapshot()),
    created_by text not null,
    created_at timestamptz not null default duly.now(),
    updated_at timestamptz not null default duly.now(),
    disabled_at timestamptz,
    disabled_by text,
    disable_reason text,
    -- The breaker: failures in a row, since when, and until when nothing is sent.
    failures integer not null default 0,
    failing_since timestamptz,
    shut_until timestamptz,
    primary key (org_id, endpoint_id)
);
select duly.isolate('duly.webhook_endpoints');
grant select on duly.webhook_endpoints to duly_tenant, duly_operator;
grant select, insert, update, delete on duly.webhook_endpoints to duly_engine;

-- What is sent is signed with each secret that has not expired, so that one can follow another. Nobody else reads them.
create table duly.webhook_secrets (
    org_id uuid not null,
    endpoint_id uuid not null,
    secret_id uuid not null,
    secret text not null,
    created_at timestamptz not null default duly.now(),
    expires_at timestamptz,
    primary key (org_id, endpoint_id, secret_id),
    foreign key (org_id, endpoint_id) references duly.webhook_endpoints on delete cascade
);
select duly.isolate('duly.webhook_secrets');
grant select (org_id, endpoint_id, secret_id, created_at, expires_at) on duly.webhook_secrets to duly_tenant, duly_operator;
grant select, insert, update, delete on duly.webhook_secrets to duly_engine;

-- Every message to an endpoint: what it says, whether it arrived, and each try. A message about a job has the job's
-- event; any other has an id of its own, of the same kind, and number 1.
create table duly.webhook_deliveries (
    org_id uuid not null,
    endpoint_id uuid not null,
    job_id uuid not null,
    event_seq integer not null check (event_seq > 0),
    event_type text not null,
    -- Only of messages that are about no job: the others are read from the event when they are sent.
    data jsonb,
    notification_id uuid,
    status text not null default 'pending' check (status in ('pending', 'delivered', 'failed')),
    tries integer not null default 0,
    -- The last tries, each with its time, answer and error.
    try_log jsonb not null default '[]',
    due_at timestamptz not null,
    -- Whether it waits for the one before it of the same job; whoever ends that one lets it go.
    follows boolean not null default false,
    -- Who sends it now, and until when that is believed. As long, it is not due.
    held_by uuid,
    held_until timestamptz,
    created_at timestamptz not null default duly.now(),
    ended_at timestamptz,
    primary key (org_id, endpoint_id, job_id, event_seq),
    check ((status = 'pending') = (ended_at is null))
) partition by range (job_id);
-- The next to be sent to each endpoint: of each job at most one, whatever waits behind it.
create index webhook_deliveries_due on duly.webhook_deliveries (org_id, endpoint_id, due_at) where status = 'pending' and not follows;
create index webhook_deliveries_by_time on duly.webhook_deliveries (org_id, endpoint_id, created_at desc, job_id desc, event_seq desc);
insert into duly.partitioned_tables (parent, key_column, key_kind, step, ahead, storage, dated_in, dated_by, names_blobs)
values ('webhook_deliveries', 'job_id', 'uuid7', 'week', 8, '', 'webhook_deliveries', 'created_at', false);
create table duly.webhook_deliveries_default partition of duly.webhook_deliveries default;
select duly.lock_partition('webhook_deliveries_default');
select duly.isolate('duly.webhook_deliveries');
grant select on duly.webhook_deliveries to duly_tenant, duly_operator;
grant select, insert, update, delete on duly.webhook_deliveries to duly_engine;

-- How far the relay has read: every event up to here has become what is to be told. Whoever relays holds the row.
-- It begins with what happens from now on.
create table duly.relay_mark (
    one boolean primary key default true check (one),
    commit_xid xid8 not null,
    job_id uuid not null,
    event_seq integer not null,
    moved_at timestamptz not null default duly.now()
);
insert into duly.relay_mark (commit_xid, job_id, event_seq)
select coalesce((select (e.commit_xid::text::bigint + 1)::text::xid8 from duly.event_log e
                 where e.commit_xid < pg_snapshot_xmin(pg_current_snapshot()) order by e.commit_xid desc limit 1), '0'),
       '00000000-0000-0000-0000-000000000000', 0;
grant select, update on duly.relay_mark to duly_engine;
grant select on duly.relay_mark to duly_operator;

-- Who wants to be told how jobs end: of one job, of a job type, or of all.
create table duly.subscriptions (
    org_id uuid not null references duly.organizations,
    subscription_id uuid not null,
    job_id uuid,
    job_type text,
    outcomes text[] not null check (outcomes <@ array['completed', 'failed', 'dead', 'canceled'] and cardinality(outcomes) > 0),
    channel text not null,
    recipient text not null,
    locale text not null,
    since_xid xid8 not null default pg_snapshot_xmin(pg_current_snapshot()),
    created_by text not null,
    created_at timestamptz not null default duly.now(),
    told_at timestamptz,
    primary key (org_id, subscription_id),
    check (job_id is null or job_type is null)
);
create index subscriptions_of_job on duly.subscriptions (org_id, job_id) where job_id is not null;
create index subscriptions_wide on duly.subscriptions (org_id, subscription_id) where job_id is null;
select duly.isolate('duly.subscriptions');
grant select on duly.subscriptions to duly_tenant, duly_operator;
grant select, insert, update, delete on duly.subscriptions to duly_engine;

-- An org's own words; where it has none, the ones that come with Duly are used.
create table duly.notification_templates (
    org_id uuid not null references duly.organizations,
    template_key text not null,
    locale text not null,
    subject text not null,
    body text not null,
    updated_by text not null,
    updated_at timestamptz not null default duly.now(),
    primary key (org_id, template_key, locale)
);
select duly.isolate('duly.notification_templates');
grant select on duly.notification_templates to duly_tenant, duly_operator;
grant select, insert, update, delete on duly.notification_templates to duly_engine;

create table duly.notifications (
    org_id uuid not null references duly.organizations,
    notification_id uuid not null,
    -- The job that it is about, if any.
    job_id uuid,
    channel text not null,
    recipient text not null,
    template_key text not null,
    locale text not null,
    payload jsonb not null,
    payload_hash text not null,
    schedule_bucket text not null,
    -- As it was told; null until then.
    subject text,
    body text,
    delivery_status text not null default 'pending' check (delivery_status in ('pending', 'sent', 'failed', 'suppressed')),
    attempt_count integer not null default 0,
    last_error text,
    -- The job that delivers it.
    delivery_job_id uuid,
    scheduled_at timestamptz not null,
    sent_at timestamptz,
    read_at timestamptz,
    created_by text not null,
    created_at timestamptz not null default duly.now(),
    primary key (org_id, notification_id)
);
create unique index notifications_once on duly.notifications (org_id, channel, recipient, template_key, payload_hash, schedule_bucket);
create index notifications_by_job on duly.notifications (org_id, job_id, channel) where job_id is not null;
create index notifications_by_status on duly.notifications (delivery_status, scheduled_at);
create index notifications_to_hand_over on duly.notifications (scheduled_at) where delivery_status = 'pending' and delivery_job_id is null;
create index notifications_pending on duly.notifications (org_id) where delivery_status = 'pending';
create index notifications_of_recipient on duly.notifications (org_id, channel, recipient, notification_id desc);
select duly.isolate('duly.notifications');
grant select on duly.notifications to duly_tenant, duly_operator;
grant select, insert, update, delete on duly.notifications to duly_engine;

-- What a recipient wants, by template; the empty template stands for all that are not named.
create table duly.notification_preferences (
    org_id uuid not null references duly.organizations,
    channel text not null,
    recipient text not null,
    template_key text not null default '',
    wanted boolean not null,
    updated_by text not null,
    updated_at timestamptz not null default duly.now(),
    primary key (org_id, channel, recipient, template_key)
);
select duly.isolate('duly.notification_preferences');
grant select on duly.notification_preferences to duly_tenant, duly_operator;
grant select, insert, update, delete on duly.notification_preferences to duly_engine;

-- Whom nothing is sent to, whatever anybody wants: addresses that bounce, people who have left.
create table duly.notification_suppressions (
    org_id uuid not null references duly.organizations,
    channel text not null,
    recipient text not null,
    reason text not null,
    created_by text not null,
    created_at timestamptz not null default duly.now(),
    primary key (org_id, channel, recipient)
);
select duly.isolate('duly.notification_suppressions');
grant select on duly.notification_suppressions to duly_tenant, duly_operator;
grant select, insert, update, delete on duly.notification_suppressions to duly_engine;

-- What somebody should look at, until it is over. Those of the installation belong to Duly's own org.
create table duly.alerts (
    org_id uuid not null references duly.organizations,
    alert_id uuid not null,
    kind text not null,
    -- What it is about: one alert of a kind and a target at a time.
    target text not null,
    severity text not null check (severity in ('warning', 'critical')),
    summary text not null,
    detail jsonb not null default '{}',
    measured double precision,
    threshold double precision,
    fired_at timestamptz not null default duly.now(),
    seen_at timestamptz not null default duly.now(),
    resolved_at timestamptz,
    -- Whether somebody was told of the beginning, and of the end.
    told_at timestamptz,
    told_end_at timestamptz,
    primary key (org_id, alert_id)
);
create unique index alerts_open on duly.alerts (org_id, kind, target) where resolved_at is null;
-- Dead letters are not told from here: whoever wants to know of them subscribes.
create index alerts_to_tell on duly.alerts (org_id, fired_at)
    where kind <> 'dead_letter' and (told_at is null or (resolved_at is not null and told_end_at is null));
-- Those that are over when nobody has seen them for a while; one of a dead letter is over with the letter.
create index alerts_to_watch on duly.alerts (seen_at) where kind <> 'dead_letter' and resolved_at is null;
create index alerts_over on duly.alerts (resolved_at) where kind <> 'dead_letter';
create index alerts_by_time on duly.alerts (org_id, fired_at desc, alert_id desc);
-- A job dies once, and so there is one alert of it, ever.
create unique index alerts_of_dead_letters on duly.alerts (org_id, target) where kind = 'dead_letter';
select duly.isolate('duly.alerts');
grant select on duly.alerts to duly_tenant, duly_operator;
grant select, insert, update, delete on duly.alerts to duly_engine;

-- What a queue promises; null: what the settings say.
alter table duly.queues
    add column alert_depth integer check (alert_depth > 0),
    add column alert_wait interval check (alert_wait > interval '0');
alter table duly.dead_letters add column alerted_at timestamptz;
create index dead_letters_to_alert on duly.dead_letters (dead_at) where alerted_at is null;

select duly.ensure_partitions();
