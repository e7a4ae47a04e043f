-- The audit trail becomes a chain of seals, and the feed of an org's events knows what retention took away.

-- Entries are sealed in the order of their transactions, as events are read: one that commits late never falls behind
-- a seal. The constant goes to the rows that are there, without rewriting them; they come first in the chain.
alter table duly.audit_entries add column commit_xid xid8 not null default '0';
alter table duly.audit_entries alter column commit_xid set default pg_current_xact_id();
-- What is to be sealed next, of all orgs; and the chain of one org.
create index audit_entries_by_commit on duly.audit_entries (commit_xid, occurred_at, entry_id);
create index audit_entries_in_chain on duly.audit_entries (org_id, commit_xid, occurred_at, entry_id);

-- Nobody has sealed anything yet.
alter table duly.audit_seals
    add column version smallint not null,
    add column last_commit_xid xid8 not null,
    add column entry_ids uuid[] not null,
    add column digests bytea[] not null,
    add check (entry_count = cardinality(entry_ids) and entry_count = cardinality(digests));

-- How far the sealing has come: every entry up to here has its seal. Whoever seals holds the row.
create table duly.audit_mark (
    one boolean primary key default true check (one),
    commit_xid xid8 not null,
    occurred_at timestamptz not null,
    entry_id uuid not null
);
insert into duly.audit_mark (commit_xid, occurred_at, entry_id)
values ('0', '1970-01-01T00:00:00Z', '00000000-0000-0000-0000-000000000000');
grant select, update on duly.audit_mark to duly_engine;
grant select on duly.audit_mark to duly_operator;

-- Up to which transaction events were dropped, drop by drop: a reader who was not that far has lost some, and is told.
create table duly.event_drops (
    drop_id bigint generated always as identity primary key,
    dropped_through xid8 not null,
    dropped_at timestamptz not null default duly.now()
);
grant select on duly.event_drops to duly_engine, duly_operator;

-- As in 0014, but for the note of what is dropped.
create or replace function duly.drop_partition(t duly.partitioned_tables, p_partition text) returns void
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
    if t.parent = 'event_log' then
        execute format($sql$
            insert into duly.event_drops (dropped_through)
            select commit_xid from duly.%I order by commit_xid desc limit 1
        $sql$, p_partition);
    end if;
    -- Should the caller hang before the commit, everybody would wait for it.
    perform set_config('idle_in_transaction_session_timeout', '5s', true);
    execute format('lock table only duly.%I in access exclusive mode', t.parent);
    execute format('lock table duly.%I, duly.%I in access exclusive mode nowait', p_partition, t.parent || '_default');
    execute format('drop table duly.%I', p_partition);
end $$;

-- As in 0014, but for the note of what is deleted.
create or replace function duly.delete_strays(
    t duly.partitioned_tables, p_before timestamptz, p_cutoff timestamptz
) returns integer
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
            delete from duly.%1$I d using old o where d.ctid = o.ctid
            returning d.org_id, %5$s as blob_ref, %6$s as commit_xid
        ), released as (
            insert into duly.released_blobs (blob_ref)
            select distinct g.blob_ref from gone g where g.blob_ref like 'blob:' || g.org_id || '/%%'
            on conflict (blob_ref) do update set released_at = excluded.released_at
        ), noted as (
            insert into duly.event_drops (dropped_through)
            select g.commit_xid from gone g where g.commit_xid is not null order by g.commit_xid desc limit 1
        )
        select count(*) from gone
        $sql$, t.parent || '_default', t.key_column, v_bound, v_free,
            case when t.names_blobs then 'd.payload_ref' else 'null::text' end,
            case when t.parent = 'event_log' then 'd.commit_xid' else 'null::xid8' end)
    into v_deleted using p_cutoff;
    return v_deleted;
end $$;
