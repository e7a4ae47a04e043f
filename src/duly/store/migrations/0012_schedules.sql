-- Schedules: how far their ticks are accounted for, who paused them, and what stands in their way.

alter table duly.schedules
    add column project_id uuid,
    -- Every tick up to here is recorded, and none after it.
    add column counted_until timestamptz not null default duly.now(),
    add column paused_by text,
    add column pause_reason text,
    -- A schedule that could not be served is left alone until then; the others go on.
    add column retry_at timestamptz,
    add column last_error text,
    -- A deleted schedule stays, because its ticks do.
    add column deleted_at timestamptz,
    -- A row that was made by hand is looked at at once: its first tick is then computed.
    alter column next_tick_at set default duly.now(),
    alter column schedule_id set default duly.uuid7(),
    add foreign key (org_id, project_id) references duly.projects,
    add check (jsonb_typeof(payload) = 'object'),
    add check ((paused_at is null) = (paused_by is null)),
    drop constraint schedules_org_id_name_key;

-- A name is free again when its schedule was deleted.
create unique index schedules_by_name on duly.schedules (org_id, name) where deleted_at is null;

-- Paused schedules are looked at as well: their ticks are recorded as missed while they pass.
drop index duly.schedules_due;
create index schedules_due on duly.schedules (next_tick_at) where deleted_at is null;
