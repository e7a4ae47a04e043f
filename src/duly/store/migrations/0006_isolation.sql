-- Row level security on every table of a tenant, and who may do what.

-- Called for each table with an org; later migrations call it for theirs.
create function duly.isolate(p_table regclass) returns void
    language plpgsql
as $$
begin
    execute format('alter table %s enable row level security', p_table);
    execute format('alter table %s force row level security', p_table);
    -- The subselect is evaluated once per statement, so that the primary key serves the comparison.
    execute format('create policy tenant_isolation on %s to duly_tenant
        using (org_id = (select duly.current_org())) with check (org_id = (select duly.current_org()))', p_table);
    execute format('create policy engine_works on %s to duly_engine using (true) with check (true)', p_table);
    execute format('create policy operator_reads on %s for select to duly_operator using (true)', p_table);
end $$;

select duly.isolate(t::regclass) from unnest(array[
    'duly.organizations', 'duly.projects', 'duly.members', 'duly.api_keys',
    'duly.job_records', 'duly.job_states', 'duly.ready', 'duly.scheduled', 'duly.active_runs', 'duly.ledger',
    'duly.event_log', 'duly.result_snapshots', 'duly.dead_letters', 'duly.artifacts',
    'duly.schedules', 'duly.schedule_ticks', 'duly.audit_entries', 'duly.audit_seals'
]) t;
-- The two branches of result_snapshots are partitions themselves.
select duly.lock_partition(t) from unnest(array['result_partials', 'result_finals']) t;

-- A tenant reads its own; it writes through the functions of the schema.
grant select on
    duly.organizations, duly.projects, duly.members, duly.job_records, duly.job_states, duly.ledger,
    duly.event_log, duly.result_snapshots, duly.dead_letters, duly.artifacts, duly.schedules,
    duly.schedule_ticks, duly.audit_entries, duly.audit_seals, duly.queues
    to duly_tenant, duly_operator;
grant select (org_id, key_id, name, environment, scopes, created_by, created_at, expires_at, revoked_at, last_used_at)
    on duly.api_keys to duly_tenant, duly_operator;
grant select on duly.workers, duly.claims, duly.ready, duly.scheduled, duly.active_runs to duly_operator;

-- The engine works, but records, events, results and audit rows are written once.
grant select, insert on
    duly.job_records, duly.event_log, duly.result_snapshots, duly.audit_entries, duly.audit_seals,
    duly.schedule_ticks to duly_engine;
grant select, insert, update, delete on
    duly.organizations, duly.projects, duly.members, duly.api_keys, duly.queues, duly.job_states, duly.ready,
    duly.scheduled, duly.active_runs, duly.ledger, duly.workers, duly.claims, duly.dead_letters,
    duly.artifacts, duly.schedules to duly_engine;
grant select on duly.partitioned_tables to duly_engine;

grant execute on function
    duly.now(), duly.current_org(), duly.uuid7_floor(timestamptz), duly.uuid7(), duly.uuid7_time(uuid),
    duly.random_id() to duly_engine, duly_tenant, duly_operator;
grant execute on function duly.ensure_partitions() to duly_engine;
