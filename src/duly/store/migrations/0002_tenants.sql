-- Who owns the work: organizations, their projects, members and keys.

create table duly.organizations (
    org_id uuid primary key,
    name text not null check (name <> ''),
    status text not null default 'active' check (status in ('active', 'suspended')),
    created_at timestamptz not null default duly.now(),
    updated_at timestamptz not null default duly.now()
);

create table duly.projects (
    org_id uuid not null references duly.organizations,
    project_id uuid not null,
    name text not null check (name <> ''),
    created_at timestamptz not null default duly.now(),
    primary key (org_id, project_id)
);

create table duly.members (
    org_id uuid not null references duly.organizations,
    user_id text not null check (user_id <> ''),
    role text not null check (role in ('viewer', 'operator', 'admin')),
    created_at timestamptz not null default duly.now(),
    primary key (org_id, user_id)
);

create table duly.api_keys (
    org_id uuid not null references duly.organizations,
    key_id text not null,
    name text not null,
    environment text not null,
    secret_hash bytea not null,
    scopes text[] not null,
    created_by text not null,
    created_at timestamptz not null default duly.now(),
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz,
    primary key (org_id, key_id)
);
-- A caller shows a key before anybody knows the org.
create index api_keys_by_key on duly.api_keys (key_id);
