-- Documents of an org: folders and who may see them, files and their versions, uploads under way, extractions.
-- Everything is the org's own: a tenant reads and writes it under row level security.

reset role;
create schema documents authorization duly_owner;
set local role duly_owner;
grant usage on schema documents to duly_engine, duly_tenant, duly_operator;

create table documents.schema_versions (
    version integer primary key,
    name text not null,
    checksum text not null,
    applied_at timestamptz not null default now()
);
grant select on documents.schema_versions to duly_engine;

-- Isolates a table, and lets its org work in it; later migrations call it for theirs.
create function documents.isolate(p_table regclass) returns void
    language plpgsql
as $$
begin
    perform duly.isolate(p_table);
    execute format('grant select, insert, update, delete on %s to duly_tenant', p_table);
    execute format('grant select on %s to duly_operator', p_table);
    execute format('grant select, insert, update, delete on %s to duly_engine', p_table);
end $$;

-- Folders. What lies in none lies in the root, which everybody of the org sees.
create table documents.nodes (
    org_id uuid not null references duly.organizations,
    node_id uuid not null default duly.uuid7(),
    parent_id uuid,
    name text not null check (name <> '' and length(name) <= 255),
    created_by text not null,
    created_at timestamptz not null default duly.now(),
    primary key (org_id, node_id),
    unique nulls not distinct (org_id, parent_id, name),
    foreign key (org_id, parent_id) references documents.nodes
);

-- Whom a folder is for. One without any has those of the folder that it lies in; the root is for all.
create table documents.node_grants (
    org_id uuid not null,
    node_id uuid not null,
    principal text not null check (principal ~ '^[a-z_]+:.+$'),
    level text not null check (level in ('read', 'write', 'manage')),
    granted_by text not null,
    granted_at timestamptz not null default duly.now(),
    primary key (org_id, node_id, principal),
    foreign key (org_id, node_id) references documents.nodes on delete cascade
);

create table documents.documents (
    org_id uuid not null references duly.organizations,
    document_id uuid not null default duly.uuid7(),
    node_id uuid,
    name text not null check (name <> '' and length(name) <= 255),
    version integer not null default 1 check (version > 0),
    -- What the current version says; kept here so that lists need nothing else.
    sha256 text not null check (sha256 ~ '^[0-9a-f]{64}$'),
    size bigint not null check (size > 0),
    media_type text not null,
    -- How far it is: stored, extracting, extracted, needs_ocr (some pages have no text), failed, blocked.
    status text not null default 'stored'
        check (status in ('stored', 'extracting', 'extracted', 'needs_ocr', 'failed', 'blocked')),
    extraction_id uuid,
    page_count integer,
    chunk_count integer,
    language text,
    doc_type text,
    doc_type_confidence real,
    doc_type_confirmed boolean not null default false,
    metadata jsonb not null default '{}' check (jsonb_typeof(metadata) = 'object'),
    created_by text not null,
    created_at timestamptz not null default duly.now(),
    updated_at timestamptz not null default duly.now(),
    primary key (org_id, document_id),
    foreign key (org_id, node_id) references documents.nodes
);
create index on documents.documents (org_id, sha256);
create index on documents.documents (org_id, node_id, document_id);
create index on documents.documents (org_id, doc_type, document_id);

create table documents.document_versions (
    org_id uuid not null,
    document_id uuid not null,
    version integer not null check (version > 0),
    sha256 text not null check (sha256 ~ '^[0-9a-f]{64}$'),
    size bigint not null check (size > 0),
    media_type text not null,
    file_name text not null,
    created_by text not null,
    created_at timestamptz not null default duly.now(),
    primary key (org_id, document_id, version),
    foreign key (org_id, document_id) references documents.documents on delete cascade
);
-- Whether anybody still names a file is asked before it is removed.
create index on documents.document_versions (org_id, sha256);

-- Files that come in parts. Whoever begins again with the same hash goes on where they were.
create table documents.uploads (
    org_id uuid not null references duly.organizations,
    upload_id uuid not null default duly.uuid7(),
    sha256 text not null check (sha256 ~ '^[0-9a-f]{64}$'),
    size bigint not null check (size > 0),
    part_size integer not null check (part_size > 0),
    created_by text not null,
    created_at timestamptz not null default duly.now(),
    primary key (org_id, upload_id),
    unique (org_id, created_by, sha256)
);
create table documents.upload_parts (
    org_id uuid not null,
    upload_id uuid not null,
    part integer not null check (part > 0),
    sha256 text not null,
    size integer not null check (size > 0),
    primary key (org_id, upload_id, part),
    foreign key (org_id, upload_id) references documents.uploads on delete cascade
);

-- What was read out of a version, by which engine, at what cost, and who agreed that it left the house.
create table documents.extractions (
    org_id uuid not null,
    extraction_id uuid not null default duly.uuid7(),
    document_id uuid not null,
    version integer not null,
    job_id uuid,
    engine text not null check (engine in ('fast', 'hires', 'unstructured_fast', 'unstructured_hires')),
    status text not null default 'queued'
        check (status in ('queued', 'running', 'done', 'needs_ocr', 'failed', 'blocked', 'canceled')),
    consent_given_at timestamptz,
    consent_given_by text,
    estimated_pages integer,
    estimated_cost_cents integer,
    actual_pages integer,
    actual_cost_cents integer,
    result_json jsonb,
    warnings jsonb not null default '[]',
    error_code text,
    error_message text,
    started_at timestamptz,
    finished_at timestamptz,
    created_at timestamptz not null default duly.now(),
    updated_at timestamptz not null default duly.now(),
    primary key (org_id, extraction_id),
    foreign key (org_id, document_id) references documents.documents on delete cascade,
    check ((consent_given_at is null) = (consent_given_by is null))
);
create index on documents.extractions (org_id, document_id, created_at);
create unique index on documents.extractions (org_id, job_id);
-- What the reconciler compares with the jobs: those under way, and what ended lately.
create index on documents.extractions (org_id, updated_at) where status in ('queued', 'running');
create index on documents.extractions (org_id, finished_at);

select documents.isolate(t::regclass) from unnest(array[
    'documents.nodes', 'documents.node_grants', 'documents.documents', 'documents.document_versions',
    'documents.uploads', 'documents.upload_parts', 'documents.extractions'
]) t;

-- Whether somebody may do everything everywhere in the org: its admins, and the software itself.
create function documents.is_admin(p_principal text) returns boolean
    language sql stable
    set search_path = ''
    return split_part(p_principal, ':', 1) in ('system', 'operator', 'worker')
        or exists (
            select from duly.members m
            where m.org_id = (select duly.current_org()) and 'user:' || m.user_id = p_principal and m.role = 'admin')
        or exists (
            select from duly.api_keys k
            where k.org_id = (select duly.current_org()) and 'api_key:' || k.key_id = p_principal
              and 'admin' = any(k.scopes) and k.revoked_at is null
              and (k.expires_at is null or k.expires_at > duly.now()));

-- Every folder of the org with the nearest one, itself or above it, that says whom it is for.
create function documents.guards() returns table (node_id uuid, guard uuid)
    language sql stable
    set search_path = ''
begin atomic
    with recursive guarded as (
        select n.node_id, case when g.has_grants then n.node_id end as guard
        from documents.nodes n
        cross join lateral (select exists (
            select from documents.node_grants x where x.org_id = n.org_id and x.node_id = n.node_id) as has_grants) g
        where n.org_id = (select duly.current_org()) and n.parent_id is null
        union all
        select n.node_id, case when g.has_grants then n.node_id else p.guard end
        from guarded p
        join documents.nodes n on n.org_id = (select duly.current_org()) and n.parent_id = p.node_id
        cross join lateral (select exists (
            select from documents.node_grants x where x.org_id = n.org_id and x.node_id = n.node_id) as has_grants) g
    )
    select guarded.node_id, guarded.guard from guarded;
end;

-- The folders of the org in which this principal may not do it: `read`, `write` or `manage`.
create function documents.barred(p_principal text, p_level text) returns uuid[]
    language sql stable
    set search_path = ''
begin atomic
    select coalesce(array_agg(g.node_id), '{}')
    from documents.guards() g
    where g.guard is not null and not documents.is_admin(p_principal) and not exists (
        select from documents.node_grants x
        where x.org_id = (select duly.current_org()) and x.node_id = g.guard and x.principal = p_principal
          and array_position(array['read', 'write', 'manage'], x.level)
              >= array_position(array['read', 'write', 'manage'], p_level));
end;
grant execute on function documents.is_admin(text), documents.guards(), documents.barred(text, text)
    to duly_tenant, duly_engine;
