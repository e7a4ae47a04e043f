-- Retention: partitions are dropped when all they hold is old and nobody needs it; what lies outside of
-- partitions is deleted in small batches by the maintenance jobs.

-- The rows of `scheduled` leave at the front, where the next look begins: behind 200,000 dead ones a promotion took
-- three times as long, and a vacuum of them 20 ms. The other tables whose rows leave are read by key, and small.
alter table duly.scheduled set (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
-- The ledger is large and loses its oldest rows: their room is used again soon, which keeps the rows in the order
-- of time, and new block ranges are summarised early.
alter table duly.ledger set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02);

-- Blobs that a dropped row named; their org is part of the name. Equal content is one blob within an org, so it goes
-- when no row names it any more.
create table duly.released_blobs (
    blob_ref text primary key,
    released_at timestamptz not null default duly.now()
);
create index released_blobs_oldest on duly.released_blobs (released_at);
grant select, insert, update, delete on duly.released_blobs to duly_engine;
-- Few rows name a blob, so these are small.
create index job_records_by_blob on duly.job_records (org_id, payload_ref) where payload_ref is not null;
create index result_snapshots_by_blob on duly.result_snapshots (org_id, payload_ref) where payload_ref is not null;
create index artifacts_by_blob on duly.artifacts (org_id, blob_ref);
-- Every row that names a blob. A table that begins to name some must join it, or its blobs are lost.
create view duly.named_blobs with (security_invoker = true) as
select org_id, payload_ref as blob_ref from duly.job_records where payload_ref is not null
union all
select org_id, payload_ref from duly.result_snapshots where payload_ref is not null
union all
select org_id, blob_ref from duly.artifacts;
grant select on duly.named_blobs to duly_engine;

create index artifacts_expiry on duly.artifacts (expires_at);

-- Which column of which table says how old a row is: a job's rows lie where its id says, and may be written long
-- after. And which tables name blobs.
alter table duly.partitioned_tables
    add column dated_in text, add column dated_by text, add column names_blobs boolean not null default false;
update duly.partitioned_tables p set dated_in = d.dated_in, dated_by = d.dated_by, names_blobs = d.names_blobs
from (values
    ('job_records', 'job_states', 'finished_at', true),
    ('job_states', 'job_states', 'finished_at', false),
    ('event_log', 'event_log', 'occurred_at', false),
    ('result_partials', 'result_partials', 'created_at', true),
    ('result_finals', 'result_finals', 'created_at', true),
    ('schedule_ticks', 'schedule_ticks', 'tick_at', false),
    ('audit_entries', 'audit_entries', 'occurred_at', false)) d(parent, dated_in, dated_by, names_blobs)
where p.parent = d.parent;
alter table duly.partitioned_tables alter dated_in set not null, alter dated_by set not null;

-- Every partition with its range; the default one has none.
create view duly.partitions as
select t.parent, c.relname::text as partition, r.starts_at, r.ends_at, pg_total_relation_size(c.oid) as bytes
from duly.partitioned_tables t
join pg_catalog.pg_inherits i on i.inhparent = format('duly.%I', t.parent)::regclass
join pg_catalog.pg_class c on c.oid = i.inhrelid
cross join lateral regexp_match(pg_get_expr(c.relpartbound, c.oid), $$FROM \('(.+)'\) TO \('(.+)'\)$$) b
cross join lateral (
    select case t.key_kind when 'uuid7' then duly.uuid7_time(b[1]::uuid) else b[1]::timestamptz end as starts_at,
           case t.key_kind when 'uuid7' then duly.uuid7_time(b[2]::uuid) else b[2]::timestamptz end as ends_at
) r;
grant select on duly.partitions to duly_engine, duly_operator;

grant create on schema duly to duly_engine;
set local role duly_engine;

-- The jobs whose rows may not go: all of them while the job is active (one snapshot over all places where it can
-- be), the record while a live idempotency key still reads its status there. Belongs to the engine, who sees all
-- orgs; lanes are rows of `ready`, and a claim is never without its state.
create view duly.kept_back as
select org_id, job_id, true as whole, 'is ready' as why from duly.ready
union all
select org_id, job_id, true, 'waits for its time' from duly.scheduled
union all
select org_id, job_id, true, 'is ' || status from duly.job_states where finished_at is null
union all
select org_id, job_id, false, 'answers a live idempotency key' from duly.ledger
where final_status is null and expires_at > duly.now();
grant select on duly.kept_back to duly_owner, duly_operator;

-- Maintenance jobs are jobs, so they belong to somebody.
insert into duly.organizations (org_id, name) values ('00000000-0000-7000-8000-00000000d017', 'Duly');

set local role duly_owner;
revoke create on schema duly from duly_engine;

-- What follows is the owner's own, but for the last function, which the engine may call.

-- Why a partition may not be dropped; null if it may. No new job gets an id this old, and an ended one never
-- changes: what is free stays free, so no lock is needed to look.
create function duly.why_kept(
    t duly.partitioned_tables, p_partition text, p_from timestamptz, p_to timestamptz, p_cutoff timestamptz
) returns text
    language plpgsql
as $$
declare
    v_why text;
    v_young boolean;
begin
    if t.key_kind = 'uuid7' then
        select format('job %s %s', k.job_id, k.why) into v_why from duly.kept_back k
        where k.job_id >= duly.uuid7_floor(p_from) and k.job_id < duly.uuid7_floor(p_to)
          and (k.whole or t.parent = 'job_records')
        limit 1;
    end if;
    -- A record without its state would look like a job that waits: the state goes last.
    if t.parent = 'job_states' and exists (
        select from duly.partitions p where p.parent = 'job_records' and p.starts_at < p_to and p.ends_at > p_from
    ) then
        v_why := coalesce(v_why, 'its job_records are still there');
    end if;
    if v_why is null then
        execute format('select exists (select from duly.%I where %I >= $1)',
            replace(p_partition, t.parent, t.dated_in), t.dated_by)
        into v_young using p_cutoff;
        v_why := case when v_young then format('has rows with %s after %s', t.dated_by, p_cutoff) end;
    end if;
    return v_why;
end $$;

-- A partition is locked by its parent, and everybody goes through the parent. So only the wait for the parent may
-- take time, and while it lasts nothing is held that others wait for: there is no way to a deadlock.
create function duly.drop_partition(t duly.partitioned_tables, p_partition text) returns void
    language plpgsql
as $$
begin
    if t.names_blobs then
        -- A reference that a caller made up may not name what is another org's.
        execute format($sql$
            insert into duly.released_blobs (blob_ref)
            select distinct payload_ref from duly.%I where payload_ref like 'blob:' || org_id || '/%%'
            on conflict (blob_ref) do update set released_at = excluded.released_at
        $sql$, p_partition);
    end if;
    -- Should the caller hang before the commit, everybody would wait for it.
    perform set_config('idle_in_transaction_session_timeout', '5s', true);
    execute format('lock table only duly.%I in access exclusive mode', t.parent);
    execute format('lock table duly.%I, duly.%I in access exclusive mode nowait', p_partition, t.parent || '_default');
    execute format('drop table duly.%I', p_partition);
end $$;

-- The default partition is never dropped: its old rows are deleted, a few hundred at a time.
create function duly.delete_strays(t duly.partitioned_tables, p_before timestamptz, p_cutoff timestamptz) returns integer
    language plpgsql
as $$
declare
    v_bound text := duly.partition_bound(t.key_kind, p_before);
    v_free text := '';
    v_deleted integer;
begin
    if t.key_kind = 'uuid7' then
        v_free := format($sql$
            and not exists (select from duly.%I s where s.org_id = d.org_id and s.job_id = d.job_id and s.%I >= $1)
            and not exists (
                select from duly.kept_back k
                where k.org_id = d.org_id and k.job_id = d.job_id and k.job_id < %s and (k.whole or %L))
            $sql$, t.dated_in || '_default', t.dated_by, v_bound, t.parent = 'job_records');
    end if;
    if t.parent = 'job_states' then
        v_free := v_free || $sql$
            and not exists (select from duly.job_records_default r where r.org_id = d.org_id and r.job_id = d.job_id)
            $sql$;
    end if;
    execute format($sql$
        with old as materialized (
            select d.ctid from duly.%1$I d where d.%2$I < %3$s %4$s limit 500
        ), gone as (
            delete from duly.%1$I d using old o where d.ctid = o.ctid returning d.org_id, %5$s as blob_ref
        ), released as (
            insert into duly.released_blobs (blob_ref)
            select distinct g.blob_ref from gone g where g.blob_ref like 'blob:' || g.org_id || '/%%'
            on conflict (blob_ref) do update set released_at = excluded.released_at
        )
        select count(*) from gone
        $sql$, t.parent || '_default', t.key_column, v_bound, v_free,
            case when t.names_blobs then 'd.payload_ref' else 'null::text' end)
    into v_deleted using p_cutoff;
    return v_deleted;
end $$;

-- Drop at most one partition of a table: the oldest whose whole range is older than `p_keep` and which nobody needs
-- any more; and delete some old rows of the default partition. Says what was dropped, what was kept and why.
-- One process at a time, with a patience of two seconds: whoever is in its way is not waited for longer.
create function duly.drop_expired_partitions(p_parent text, p_keep interval)
returns table (partition text, outcome text, why text, row_count integer)
    language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '2s'
    -- It reads whole partitions, which the engine's own statements never do.
    set enable_seqscan = on set enable_hashjoin = on
as $$
declare
    t duly.partitioned_tables := (select p from duly.partitioned_tables p where p.parent = p_parent);
    v_step interval := ('1 ' || t.step)::interval;
    v_cutoff timestamptz := duly.now() - p_keep;
    v_before timestamptz;
    c duly.partitions;
begin
    if t.parent is null then
        perform duly.refuse('DU404', 'parent', format('%L has no partitions', p_parent),
            'name a table of duly.partitioned_tables');
    end if;
    if p_keep is null or p_keep <= interval '0' or p_keep > interval '50 years' then
        perform duly.refuse('DU422', 'keep', 'not a time to keep rows for', 'give up to 50 years');
    end if;
    if not pg_try_advisory_xact_lock(4846231971) then
        return query values (p_parent, 'busy', 'another process changes the partitions', null::integer);
        return;
    end if;
    -- The last step is made again by `ensure_partitions`, and new jobs may have ids of yesterday.
    v_before := least(v_cutoff, (date_trunc(t.step, duly.now() at time zone 'UTC') - v_step) at time zone 'UTC');
    for c in select * from duly.partitions p where p.parent = p_parent and p.ends_at <= v_before order by p.ends_at loop
        partition := c.partition;
        why := duly.why_kept(t, c.partition, c.starts_at, c.ends_at, v_cutoff);
        outcome := 'kept';
        if why is null then
            begin
                perform duly.drop_partition(t, c.partition);
                outcome := 'dropped';
            exception
                when lock_not_available then
                    outcome := 'busy';
                    why := sqlerrm;
                when dependent_objects_still_exist then
                    why := sqlerrm;
            end;
        end if;
        return next;
        if outcome = 'dropped' then
            return; -- and commit soon: the lock is held until then
        end if;
        exit when outcome = 'busy';
    end loop;
    partition := t.parent || '_default';
    outcome := 'deleted';
    why := null;
    row_count := duly.delete_strays(t, v_before, v_cutoff);
    if row_count > 0 then
        return next;
    end if;
end $$;
grant execute on function duly.drop_expired_partitions to duly_engine;
