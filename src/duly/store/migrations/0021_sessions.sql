-- Log-ins of browsers: each stands for a key or for a member, and is worth no more than that is worth now.

create table duly.sessions (
    org_id uuid not null references duly.organizations,
    -- Of a token with 256 random bits, which is in the browser and nowhere else.
    session_hash bytea not null,
    key_id text,
    user_id text,
    created_at timestamptz not null default duly.now(),
    expires_at timestamptz not null,
    primary key (org_id, session_hash),
    foreign key (org_id, key_id) references duly.api_keys on delete cascade,
    -- Who is removed and comes back logs in anew.
    foreign key (org_id, user_id) references duly.members on delete cascade,
    check (num_nonnulls(key_id, user_id) = 1)
);
-- A browser shows its session before anybody knows the org.
create index sessions_by_hash on duly.sessions (session_hash);
create index sessions_expiry on duly.sessions (expires_at);
create index sessions_of_member on duly.sessions (org_id, user_id) where user_id is not null;
select duly.isolate('duly.sessions');
grant select (org_id, key_id, user_id, created_at, expires_at) on duly.sessions to duly_tenant, duly_operator;
grant select, insert, update, delete on duly.sessions to duly_engine;
