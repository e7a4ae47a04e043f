-- Where documents are brought in from: accounts elsewhere, how far each of their folders was read, and which
-- of their files became which document.

create table documents.connectors (
    org_id uuid not null references duly.organizations,
    connector_id uuid not null default duly.uuid7(),
    provider text not null check (provider in ('dropbox', 'onedrive', 'gdrive')),
    name text not null check (name <> '' and length(name) <= 255),
    -- What the secret is called, never the secret.
    secret_ref text not null check (secret_ref ~ '^(env:[A-Z][A-Z0-9_]{0,63}|file:[a-z0-9][a-z0-9_.-]{0,63})$'),
    -- As people know it, for them to read.
    account text check (length(account) <= 255),
    -- Which drive of the account, where it has several; none is its own.
    drive text check (drive ~ '^[A-Za-z0-9!_.-]{1,255}$'),
    -- Where the documents go. No foreign key: of a folder that is gone, imports must stop. They must not go on
    -- into the root, which everybody sees.
    node_id uuid,
    created_by text not null,
    created_at timestamptz not null default duly.now(),
    disabled_at timestamptz,
    last_import_at timestamptz,
    primary key (org_id, connector_id),
    unique (org_id, name)
);

-- How far a remote folder was read. Everything before it is in.
create table documents.connector_cursors (
    org_id uuid not null,
    connector_id uuid not null,
    remote_path text not null,
    cursor text not null,
    updated_at timestamptz not null default duly.now(),
    primary key (org_id, connector_id, remote_path),
    foreign key (org_id, connector_id) references documents.connectors on delete cascade
);

-- The remote files that were taken, each at its last revision.
create table documents.connector_files (
    org_id uuid not null,
    connector_id uuid not null,
    remote_id text not null,
    revision text not null,
    remote_path text not null,
    checksum text,
    -- None: somebody deleted the document. It comes back when the file changes, or when it is asked for by name.
    document_id uuid,
    version integer,
    job_id uuid not null,
    imported_at timestamptz not null default duly.now(),
    -- When the file was found to be gone; the document stays.
    removed_at timestamptz,
    primary key (org_id, connector_id, remote_id),
    foreign key (org_id, connector_id) references documents.connectors on delete cascade,
    foreign key (org_id, document_id) references documents.documents on delete set null (document_id)
);
create index on documents.connector_files (org_id, document_id);

select documents.isolate(t::regclass) from unnest(array[
    'documents.connectors', 'documents.connector_cursors', 'documents.connector_files'
]) t;
