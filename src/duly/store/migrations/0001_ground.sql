-- The schema, its roles and the few functions that everything else is written with.
-- Roles are shared by all databases of a cluster, so another database may just have made them.

do $$
declare
    role_name text;
begin
    foreach role_name in array array['duly_owner', 'duly_engine', 'duly_tenant', 'duly_operator'] loop
        begin
            if not exists (select from pg_catalog.pg_roles where rolname = role_name) then
                execute format('create role %I nologin noinherit', role_name);
            end if;
        exception when duplicate_object or unique_violation then
            null;
        end;
    end loop;
    if not (select rolsuper from pg_catalog.pg_roles where rolname = current_user) then
        execute format('grant duly_owner, duly_engine, duly_tenant, duly_operator to %I', current_user);
    end if;
    -- Functions that write for others are made by the owner and given to the engine.
    if not pg_has_role('duly_owner', 'duly_engine', 'member') then
        grant duly_engine to duly_owner;
    end if;
end $$;

create schema duly authorization duly_owner;
grant usage on schema duly to duly_engine, duly_tenant, duly_operator;
-- From here on everything belongs to the owner.
set local role duly_owner;
-- By default anybody may execute a new function. Here nobody may who was not named.
alter default privileges revoke execute on functions from public;

create table duly.schema_versions (
    version integer primary key,
    name text not null,
    checksum text not null,
    applied_at timestamptz not null default now()
);
grant select on duly.schema_versions to duly_engine;

-- The database's clock is the only one. Tests may set it.
create function duly.now() returns timestamptz
    language sql stable parallel safe
    return coalesce(nullif(current_setting('duly.now', true), '')::timestamptz, now());

-- The org of this transaction, or null outside of one.
create function duly.current_org() returns uuid
    language sql stable parallel safe
    return nullif(current_setting('duly.org_id', true), '')::uuid;

-- The smallest uuid v7 of a moment: the bound of partitions and of time ranges over job ids.
create function duly.uuid7_floor(at timestamptz) returns uuid
    language sql immutable parallel safe
    return (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '70008000000000000000')::uuid;

create function duly.uuid7() returns uuid
    language sql volatile parallel safe
    return overlay(
        overlay(gen_random_uuid()::text placing '7' from 15)
        placing left(duly.uuid7_floor(clock_timestamp())::text, 13) from 1
    )::uuid;

create function duly.uuid7_time(id uuid) returns timestamptz
    language sql immutable parallel safe
    return to_timestamp(('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint / 1000.0);

-- 128 random bits: two random uuids, without the fixed version and variant digits.
create function duly.random_id() returns uuid
    language sql volatile parallel safe
    return (
        left(replace(gen_random_uuid()::text, '-', ''), 12)
        || right(replace(gen_random_uuid()::text, '-', ''), 15)
        || right(replace(gen_random_uuid()::text, '-', ''), 5)
    )::uuid;
