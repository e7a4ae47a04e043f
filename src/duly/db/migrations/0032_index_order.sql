-- New partitions create their primary key last. While a table is empty, all indexes that fit a statement cost the same, and
-- the planner takes the newest. For the record of a job that was the one by permalink, whose first column is the org: until
-- its plan was made again, a claim read all records of an org for each of its jobs.

lock table duly.job_records in access exclusive mode;

create or replace function duly.make_partition(p_parent text, p_from timestamptz, p_to timestamptz) returns boolean
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    t duly.partitioned_tables := (select p from duly.partitioned_tables p where p.parent = p_parent);
    child text := format('%s_%s', p_parent, to_char(p_from at time zone 'UTC', 'YYYYMMDD'));
    low text := duly.partition_bound(t.key_kind, p_from);
    high text := duly.partition_bound(t.key_kind, p_to);
    v_index text;
begin
    if to_regclass('duly.' || child) is not null then
        return false;
    end if;
    execute format('create table duly.%I (like duly.%I including defaults including constraints including storage) %s',
        child, p_parent, t.storage);
    -- `attach` takes over these, and creates the primary key.
    for v_index in
        select pg_get_indexdef(i.indexrelid) from pg_index i
        where i.indrelid = format('duly.%I', p_parent)::regclass and not i.indisprimary order by i.indexrelid
    loop
        execute regexp_replace(v_index, ' INDEX \S+ ON (ONLY )?\S+ ', format(' INDEX ON duly.%I ', child));
    end loop;
    execute format('with moved as (delete from duly.%I where %I >= %s and %I < %s returning *)
        insert into duly.%I select * from moved', p_parent || '_default', t.key_column, low, t.key_column, high, child);
    execute format('alter table duly.%I attach partition duly.%I for values from (%s) to (%s)',
        p_parent, child, low, high);
    perform duly.lock_partition(child);
    return true;
end $$;

-- Partitions that are still empty: those of months to come.
do $$
declare
    v_partition record;
    v_used boolean;
begin
    for v_partition in
        select p.partition, p.starts_at, p.ends_at from duly.partitions p
        where p.parent = 'job_records' and p.starts_at is not null
    loop
        execute format('select exists (select from duly.%I)', v_partition.partition) into v_used;
        if not v_used then
            execute format('drop table duly.%I', v_partition.partition);
            perform duly.make_partition('job_records', v_partition.starts_at, v_partition.ends_at);
        end if;
    end loop;
end $$;
