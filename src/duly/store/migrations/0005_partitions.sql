-- Partitions are made ahead of time and dropped by retention. A default partition catches what
-- would otherwise be refused; its rows move when the partition they belong to is made.

create table duly.partitioned_tables (
    parent text primary key,
    key_column text not null,
    key_kind text not null check (key_kind in ('uuid7', 'time')),
    step text not null check (step in ('week', 'month')),
    ahead integer not null check (ahead > 0),
    storage text not null default ''
);

insert into duly.partitioned_tables values
    ('job_records', 'job_id', 'uuid7', 'month', 3, ''),
    ('job_states', 'job_id', 'uuid7', 'month', 3, 'with (fillfactor = 50)'),
    ('event_log', 'job_id', 'uuid7', 'week', 8, ''),
    ('result_partials', 'job_id', 'uuid7', 'week', 8, ''),
    ('result_finals', 'job_id', 'uuid7', 'month', 3, ''),
    ('schedule_ticks', 'tick_at', 'time', 'month', 3, ''),
    ('audit_entries', 'occurred_at', 'time', 'month', 3, '');

create function duly.partition_bound(key_kind text, at timestamptz) returns text
    language sql immutable
    return quote_literal(case key_kind when 'uuid7' then duly.uuid7_floor(at)::text else at::text end);

-- Runs as the owner, who alone may make tables and move rows between partitions.
create function duly.make_partition(p_parent text, p_from timestamptz, p_to timestamptz) returns boolean
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    t duly.partitioned_tables := (select p from duly.partitioned_tables p where p.parent = p_parent);
    child text := format('%s_%s', p_parent, to_char(p_from at time zone 'UTC', 'YYYYMMDD'));
    low text := duly.partition_bound(t.key_kind, p_from);
    high text := duly.partition_bound(t.key_kind, p_to);
begin
    if to_regclass('duly.' || child) is not null then
        return false;
    end if;
    execute format('create table duly.%I (like duly.%I including defaults including constraints) %s',
        child, p_parent, t.storage);
    execute format('with moved as (delete from duly.%I where %I >= %s and %I < %s returning *)
        insert into duly.%I select * from moved', p_parent || '_default', t.key_column, low, t.key_column, high, child);
    execute format('alter table duly.%I attach partition duly.%I for values from (%s) to (%s)',
        p_parent, child, low, high);
    perform duly.lock_partition(child);
    return true;
end $$;

-- Partitions are reached through their parent only: no policy lets anybody but the owner in.
create function duly.lock_partition(p_table text) returns void
    language plpgsql
as $$
begin
    execute format('alter table duly.%I enable row level security', p_table);
    execute format('alter table duly.%I force row level security', p_table);
    execute format('create policy owner_moves on duly.%I to duly_owner using (true) with check (true)', p_table);
end $$;

-- Returns how many partitions were made. One process at a time; it gives up soon rather than let readers queue
-- behind its wait for a default partition. They are made far ahead: the next run will do.
create function duly.ensure_partitions() returns integer
    language sql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '2s'
begin atomic
    select pg_advisory_xact_lock(4846231971);
    select count(*) filter (
        where duly.make_partition(p.parent, f.at at time zone 'UTC', (f.at + s.step) at time zone 'UTC')
    )::integer
    from duly.partitioned_tables p
    cross join lateral (select ('1 ' || p.step)::interval as step) s
    cross join generate_series(-1, p.ahead) n
    -- In UTC without a zone, so that a month is a month wherever the session lives.
    cross join lateral (select date_trunc(p.step, duly.now() at time zone 'UTC') + s.step * n as at) f;
end;

do $$
declare
    t duly.partitioned_tables;
begin
    for t in select * from duly.partitioned_tables loop
        execute format('create table duly.%I partition of duly.%I default %s', t.parent || '_default', t.parent, t.storage);
        perform duly.lock_partition(t.parent || '_default');
    end loop;
end $$;

select duly.ensure_partitions();
