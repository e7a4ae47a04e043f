-- The schema `documents`, as of 0.9.0. It replaces the migrations 0001 to 0006; later changes follow in files of their
-- own.
--
--   1  Isolation       3  Documents       5  Search           7  Connectors
--   2  Folders         4  Extractions     6  Document types
--
-- Every table belongs to the org: a tenant reads and writes it under row level security.

----------------------------------------------------------------------------------------------------------------------
-- 1  Isolation
----------------------------------------------------------------------------------------------------------------------

create schema documents authorization duly_owner;
-- From here on everything belongs to the owner.
set local role duly_owner;
grant usage on schema documents to duly_engine, duly_tenant, duly_operator;
-- Changing the owner of a function to the engine needs this right; the last line revokes it.
grant create on schema documents to duly_engine;

create table documents.schema_versions (
    version integer primary key,
    name text not null,
    checksum text not null,
    applied_at timestamptz not null default now()
);
grant select on documents.schema_versions to duly_engine;

-- Isolates a table by org, and grants its org all rights on its rows; later migrations call it, too.
create function documents.isolate(p_table regclass) returns void
    language plpgsql
as $$
begin
    perform duly.isolate(p_table);
    execute format('grant select, insert, update, delete on %s to duly_tenant', p_table);
    execute format('grant select on %s to duly_operator', p_table);
    execute format('grant select, insert, update, delete on %s to duly_engine', p_table);
end $$;

----------------------------------------------------------------------------------------------------------------------
-- 2  Folders
----------------------------------------------------------------------------------------------------------------------

-- A document without a folder is in the root, which all members of the org see.
-- A hidden folder reveals nothing, not even that its name is in use: a name is compared with the folders that the
-- principal may see, under the lock of the tree.
create table documents.nodes (
    org_id uuid not null references duly.organizations,
    node_id uuid not null default duly.uuid7(),
    parent_id uuid,
    name text not null check (name <> '' and length(name) <= 255),
    created_by text not null,
    created_at timestamptz not null default duly.now(),
    primary key (org_id, node_id),
    foreign key (org_id, parent_id) references documents.nodes
);
create index on documents.nodes (org_id, parent_id, name);
select documents.isolate('documents.nodes');

-- Grants of folders. A folder without grants inherits those of its parent; the root is open to all.
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
select documents.isolate('documents.node_grants');

-- Whether a principal has all rights in all folders of the org: its admins, and the software itself.
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

-- Every folder of the org with the nearest folder, itself or above, that has grants.
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

-- The folders of the org in which the principal lacks a right: `read`, `write` or `manage`.
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

----------------------------------------------------------------------------------------------------------------------
-- 3  Documents
--
-- Files, their versions, and unfinished uploads.
----------------------------------------------------------------------------------------------------------------------

create table documents.documents (
    org_id uuid not null references duly.organizations,
    document_id uuid not null default duly.uuid7(),
    node_id uuid,
    name text not null check (name <> '' and length(name) <= 255),
    version integer not null default 1 check (version > 0),
    -- Copied from the current version, so that lists read one table.
    sha256 text not null check (sha256 ~ '^[0-9a-f]{64}$'),
    size bigint not null check (size > 0),
    media_type text not null,
    -- The state: stored, extracting, extracted, needs_ocr (some pages have no text), failed, blocked.
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
select documents.isolate('documents.documents');

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
-- To find the remaining references to a file before it is removed.
create index on documents.document_versions (org_id, sha256);
select documents.isolate('documents.document_versions');

-- The storage that an org uses, as counters. A sum over all versions would be too slow for every upload.
create table documents.usage (
    org_id uuid primary key references duly.organizations,
    documents bigint not null check (documents >= 0),
    bytes bigint not null check (bytes >= 0)
);
select documents.isolate('documents.usage');

-- Uploads in parts. A new upload with the same hash continues the unfinished one.
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
select documents.isolate('documents.uploads');
select documents.isolate('documents.upload_parts');

----------------------------------------------------------------------------------------------------------------------
-- 4  Extractions
----------------------------------------------------------------------------------------------------------------------

-- Extractions of versions: the engine, the cost, and the consent to send the file to an external service.
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
-- For the adapter, which compares them with their jobs: active ones, and those that ended recently.
create index on documents.extractions (org_id, updated_at) where status in ('queued', 'running');
create index on documents.extractions (org_id, finished_at);
select documents.isolate('documents.extractions');

----------------------------------------------------------------------------------------------------------------------
-- 5  Search
--
-- Passages of documents, their words, and the document frequency of each word in its org.
-- Words are indexed under a number of their org, so that orgs share no index entries: other orgs cost nothing. Triggers
-- maintain the counts, so that they stay right whatever deletes rows.
----------------------------------------------------------------------------------------------------------------------

create table documents.document_chunks (
    org_id uuid not null,
    document_id uuid not null,
    extraction_id uuid,
    chunk_index integer not null check (chunk_index >= 0),
    page_number integer,
    element_type text,
    text text not null,
    metadata jsonb not null default '{}',
    language text,
    created_at timestamptz not null default duly.now(),
    primary key (org_id, document_id, chunk_index),
    foreign key (org_id, document_id) references documents.documents on delete cascade
);
select documents.isolate('documents.document_chunks');

-- One row per org: its number, and its totals. Changes of its words lock this row.
create table documents.search_stats (
    org_id uuid primary key,
    tag integer not null generated always as identity unique,
    chunks bigint not null default 0,
    words bigint not null default 0
);
select documents.isolate('documents.search_stats');
-- Only the triggers write counts.
revoke insert, update, delete on documents.search_stats from duly_tenant;

-- The search vectors: words of a passage (weight D), parts of its compounds (C), words of the document's name (B).
-- The name of a document without passages is at position -1. They are separate from the text, because a search reads
-- hundreds of vectors and shows twenty texts.
create table documents.chunk_terms (
    org_id uuid not null,
    document_id uuid not null,
    chunk_index integer not null check (chunk_index >= -1),
    words integer not null,
    tsv tsvector not null,
    primary key (org_id, document_id, chunk_index),
    foreign key (org_id, document_id) references documents.documents on delete cascade
    -- Uncompressed: ranking reads them word by word.
) with (toast_tuple_target = 8160);
-- Without a pending list, which every search would have to read.
create index chunk_terms_tsv on documents.chunk_terms using gin (tsv) with (fastupdate = off);
select documents.isolate('documents.chunk_terms');
-- Words are never updated.
revoke update on documents.chunk_terms from duly_tenant, duly_engine;

-- Keys for typo correction: words at an edit distance of one share a key. Long words have a key for their first and one
-- for their last part, so that with two typos one key still matches.
create function documents.near(p_tag integer, p_word text, p_length integer) returns text[]
    language sql immutable parallel safe strict
return case
    when length(p_word) not between 4 and 40 or p_word ~ '[0-9.@]' then '{}'
    when p_length < 8 then (
        select array_agg(distinct p_tag || '=' || p_length || left(p_word, i - 1) || substr(p_word, i + 1))
        from generate_series(1, length(p_word) + 1) i)
    else (
        select array_agg(distinct p_tag || side.mark || p_length || overlay(side.word placing '' from i for 1))
        from (values ('<', left(p_word, 6)), ('>', right(p_word, 6))) side(mark, word),
             generate_series(1, length(side.word)) i)
    end;

-- The number of passages of the org that contain a word: at all, at least twice, at least four times.
create table documents.search_terms (
    org_id uuid not null,
    lexeme text not null,
    tag integer not null,
    df integer not null check (df >= 0),
    df2 integer not null check (df2 >= 0),
    df4 integer not null check (df4 >= 0),
    near text[] not null generated always as (documents.near(tag, lexeme, length(lexeme))) stored,
    primary key (org_id, lexeme)
) with (fillfactor = 70);
create index search_terms_near on documents.search_terms using gin (near) with (fastupdate = off);
select documents.isolate('documents.search_terms');
revoke insert, update, delete on documents.search_terms from duly_tenant;

-- The number of the org. Locks the words of the org against other changes until the end of the transaction.
create function documents.search_tag() returns integer
    language sql volatile security definer set search_path = pg_catalog, pg_temp
begin atomic
    insert into documents.search_stats (org_id) select duly.current_org() where duly.current_org() is not null
    on conflict (org_id) do update set chunks = search_stats.chunks
    returning tag;
end;

-- Words with the number of the org.
create function documents.tagged(p_tag integer, p_words tsvector) returns tsvector
    language sql immutable parallel safe
return regexp_replace(p_words::text, '(^| )''', '\1''' || p_tag || '.', 'g')::tsvector;

-- Words that occur twice or four times have additional entries: searches for common words use only those.
create function documents.marked(p_tag integer, p_tagged tsvector) returns tsvector
    language sql immutable parallel safe
return p_tagged || coalesce((
    select array_to_tsvector(array_agg(p_tag || often.mark || substr(w.lexeme, length(p_tag::text) + 2)))
    from unnest(p_tagged) w
    join (values (2, '+2.'), (4, '+4.')) often(least, mark) on cardinality(w.positions) >= often.least), '');

create function documents.count_words() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    insert into documents.search_stats as s (org_id, chunks, words)
    select c.org_id, count(*), sum(c.words) from changed c group by c.org_id order by c.org_id
    on conflict (org_id) do update set chunks = s.chunks + excluded.chunks, words = s.words + excluded.words;
    -- Known words are raised, others inserted: an upsert would work out for each where slips of the pen may lead.
    with counted as (
        select c.org_id, s.tag, substr(w.lexeme, length(s.tag::text) + 2) as lexeme, count(*) as df,
               count(*) filter (where cardinality(w.positions) >= 2) as df2,
               count(*) filter (where cardinality(w.positions) >= 4) as df4
        from changed c
        join documents.search_stats s on s.org_id = c.org_id
        cross join unnest(c.tsv) w
        where w.positions is not null
        group by 1, 2, 3
    ), raised as (
        update documents.search_terms t set df = t.df + c.df, df2 = t.df2 + c.df2, df4 = t.df4 + c.df4
        from counted c where t.org_id = c.org_id and t.lexeme = c.lexeme
        returning t.org_id, t.lexeme
    )
    insert into documents.search_terms (org_id, lexeme, tag, df, df2, df4)
    select c.org_id, c.lexeme, c.tag, c.df, c.df2, c.df4
    from counted c
    where not exists (select from raised r where r.org_id = c.org_id and r.lexeme = c.lexeme);
    return null;
end $$;

create function documents.discount_words() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    update documents.search_stats s set chunks = s.chunks - c.chunks, words = s.words - c.words
    from (select org_id, count(*) as chunks, sum(words) as words from changed group by org_id) c
    where s.org_id = c.org_id;
    with gone as (
        select c.org_id, substr(w.lexeme, length(s.tag::text) + 2) as lexeme, count(*) as df,
               count(*) filter (where cardinality(w.positions) >= 2) as df2,
               count(*) filter (where cardinality(w.positions) >= 4) as df4
        from changed c
        join documents.search_stats s on s.org_id = c.org_id
        cross join unnest(c.tsv) w
        where w.positions is not null
        group by 1, 2
    ), lowered as (
        update documents.search_terms t set df = t.df - g.df, df2 = t.df2 - g.df2, df4 = t.df4 - g.df4
        from gone g where t.org_id = g.org_id and t.lexeme = g.lexeme and t.df > g.df
    )
    delete from documents.search_terms t using gone g
    where t.org_id = g.org_id and t.lexeme = g.lexeme and t.df <= g.df;
    return null;
end $$;

create trigger count_words after insert on documents.chunk_terms
    referencing new table as changed for each statement execute function documents.count_words();
create trigger discount_words after delete on documents.chunk_terms
    referencing old table as changed for each statement execute function documents.discount_words();

-- Words of the transaction's org that are similar to these: at an edit distance of one, or of two for words of nine
-- letters and more.
create function documents.near_terms(p_words text[])
returns table (word text, lexeme text, df integer, df2 integer, df4 integer)
    language sql stable security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off
begin atomic
    select w.word, t.lexeme, t.df, t.df2, t.df4
    from documents.search_stats s
    cross join (select x.word, length(x.word) as letters, case when length(x.word) < 9 then 1 else 2 end as slips
                from unnest(p_words) x(word)) w
    cross join lateral (
        select t.lexeme, t.df, t.df2, t.df4
        -- Fenced, so that the index on slips is the only way.
        from (select * from documents.search_terms t where t.near && array(
                  select unnest(documents.near(s.tag, w.word, l))
                  from generate_series(w.letters - w.slips, w.letters + w.slips) l) offset 0) t
        where t.org_id = s.org_id
        order by left(t.lexeme, 1) <> left(w.word, 1), abs(length(t.lexeme) - w.letters), t.df desc, t.lexeme
        limit 60) t
    where s.org_id = duly.current_org();
end;

-- Whether a document matches the filters: folder, type, time, metadata. A null filter matches all.
create function documents.asked_for(
    d documents.documents, p_nodes uuid[], p_root boolean, p_filters jsonb
) returns boolean
    language sql stable
return (p_nodes is null or d.node_id = any(p_nodes) or (p_root and d.node_id is null))
    and (not p_filters ? 'doc_types' or p_filters -> 'doc_types' ? d.doc_type)
    and (not p_filters ? 'created_from' or d.created_at >= (p_filters ->> 'created_from')::timestamptz)
    and (not p_filters ? 'created_to' or d.created_at < (p_filters ->> 'created_to')::timestamptz)
    and (not p_filters ? 'metadata' or d.metadata @> (p_filters -> 'metadata'));

create function documents.asked_for(c documents.document_chunks, p_filters jsonb) returns boolean
    language sql stable
return (not p_filters ? 'languages' or p_filters -> 'languages' ? c.language)
    and (not p_filters ? 'element_types' or p_filters -> 'element_types' ? c.element_type)
    and (not p_filters ? 'page_from' or c.page_number >= (p_filters ->> 'page_from')::integer)
    and (not p_filters ? 'page_to' or c.page_number <= (p_filters ->> 'page_to')::integer);

-- The requested folders that the principal may read; null means all folders.
create function documents.open_nodes(p_org uuid, p_principal text, p_below uuid[]) returns uuid[]
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_barred uuid[] := '{}';
begin
    -- Where no folder says whom it is for, none is closed: that is quickly seen.
    if exists (select from documents.node_grants g where g.org_id = p_org) then
        v_barred := documents.barred(p_principal, 'read');
    end if;
    if p_below is null and v_barred = '{}' then
        return null;
    end if;
    return (
        with recursive below as (
            select n.node_id from documents.nodes n
            where n.org_id = p_org
              and case when p_below is null then n.parent_id is null else n.node_id = any(p_below) end
            union
            select n.node_id from below b join documents.nodes n on n.org_id = p_org and n.parent_id = b.node_id
        )
        select coalesce(array_agg(b.node_id), '{}') from below b where b.node_id <> all(v_barred)
    );
end $$;

-- The best passages of the transaction's org for a search, among those that the principal may read.
-- Row level security would prevent the use of the index, since `@@` is not leakproof; so this runs as the engine, with
-- explicit conditions on org and folders.
--   p_any, p_all   the candidates: all passages of the first query, and a number of the second
--   p_wide         replaces p_any if a filter drops most passages, which a sample shows
--   p_whole        all matches, for a few documents that are searched completely
--   p_terms        the terms of the ranking (BM25), with their weights
-- `complete` tells whether all matches were candidates, so that `total` is exact. The filters are checked for the
-- documents of candidates, never for all documents of the org.
create function documents.find_passages(
    p_principal text, p_any tsquery, p_all tsquery, p_wide tsquery, p_whole tsquery, p_most integer,
    p_terms tsquery[], p_weights float8[], p_filters jsonb, p_grouped boolean, p_limit integer, p_offset integer
) returns table (document_id uuid, chunk_index integer, score float8, total bigint, complete boolean)
    language plpgsql stable security definer rows 20 set search_path = pg_catalog, pg_temp
    set jit = off set work_mem = '16MB' set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    v_org uuid := duly.current_org();
    v_below uuid[] := case when p_filters ? 'nodes' then
        array(select jsonb_array_elements_text(p_filters -> 'nodes')::uuid) end;
    v_named uuid[] := case when p_filters ? 'documents' then
        array(select jsonb_array_elements_text(p_filters -> 'documents')::uuid) end;
    v_nodes uuid[] := documents.open_nodes(v_org, p_principal, v_below);
    v_root boolean := v_below is null;
    v_narrow boolean := v_nodes is not null or p_filters <> '{}';
    v_passages boolean := p_filters ?| array['languages', 'element_types', 'page_from', 'page_to'];
    v_documents uuid[];
    v_few boolean := false;
    v_any tsquery := p_any;
    v_mean float8 := (
        select greatest(s.words / greatest(s.chunks, 1)::float8, 1) from documents.search_stats s where s.org_id = v_org);
begin
    if v_narrow then
        -- Planned with the values, so that each filter has its index.
        execute '
            select array_agg(d.document_id), count(*) <= 2000 and coalesce(sum(d.chunk_count), 0) <= 4000
            from (select d.document_id, d.chunk_count from documents.documents d
                  where d.org_id = $1 and ($2 is null or d.document_id = any($2))
                    and documents.asked_for(d, $3, $4, $5)
                  limit 2001) d'
        into v_documents, v_few using v_org, v_named, v_nodes, v_root, p_filters;
        if not v_few and (
            select 2 * count(*) filter (where tried.asked) <= count(*)
            from (select exists (select from documents.documents d
                                 where d.org_id = v_org and d.document_id = t.document_id
                                   and (v_named is null or d.document_id = any(v_named))
                                   and documents.asked_for(d, v_nodes, v_root, p_filters) offset 0) as asked
                  from (select * from documents.chunk_terms t where t.tsv @@ p_any offset 0) t
                  where t.org_id = v_org limit 200) tried)
        then
            v_any := p_wide;
        end if;
    end if;
    return query
    with candidate as (
        select t.document_id, t.chunk_index, t.words, t.tsv
        from documents.chunk_terms t
        where v_few and t.org_id = v_org and t.document_id = any(v_documents) and t.tsv @@ p_whole
        union all
        -- Fenced, so that the index on words is the only way.
        (select t.document_id, t.chunk_index, t.words, t.tsv
         from (select * from documents.chunk_terms t where not v_few and t.tsv @@ v_any offset 0) t
         where t.org_id = v_org and (not v_narrow or exists (
             select from documents.documents d
             where d.org_id = v_org and d.document_id = t.document_id
               and (v_named is null or d.document_id = any(v_named))
               and documents.asked_for(d, v_nodes, v_root, p_filters) offset 0))
         limit 4 * p_most)
        union all
        (select t.document_id, t.chunk_index, t.words, t.tsv
         from (select * from documents.chunk_terms t
               where not v_few and t.tsv @@ p_all and (v_any is null or not t.tsv @@ v_any) offset 0) t
         where t.org_id = v_org and (not v_narrow or exists (
             select from documents.documents d
             where d.org_id = v_org and d.document_id = t.document_id
               and (v_named is null or d.document_id = any(v_named))
               and documents.asked_for(d, v_nodes, v_root, p_filters) offset 0))
         limit p_most)
    ), ranked as (
        select c.document_id, c.chunk_index, (
            -- ts_rank of one word is its count, saturated: of x the count is 0.645 x / (1 - x). The rest is BM25
            -- with k1 0.9 and b 0.4.
            select sum(u.weight / (1 + 1.395::float8 * (0.6::float8 + 0.4::float8 * c.words / v_mean)
                                     * (1 / (1e-9::float8 + ts_rank('{1,0.5,0.4,1}', c.tsv, u.term)) - 1)))
            from unnest(p_terms, p_weights) u(term, weight)) as score
        from candidate c
        where not v_passages or exists (
            select from documents.document_chunks k
            where k.org_id = v_org and k.document_id = c.document_id and k.chunk_index = c.chunk_index
              and documents.asked_for(k, p_filters))
    ), best as (
        select distinct on (r.document_id, case when p_grouped then 0 else r.chunk_index end) r.*
        from ranked r
        order by r.document_id, case when p_grouped then 0 else r.chunk_index end, r.score desc, r.chunk_index
    )
    select b.document_id, b.chunk_index, b.score, count(*) over (),
           v_few or (p_all is null and v_any is not distinct from p_whole and count(*) over () < 4 * p_most)
    from best b
    order by b.score desc, b.document_id, b.chunk_index
    limit p_limit offset p_offset;
end $$;

grant execute on function documents.open_nodes(uuid, text, uuid[]),
    documents.asked_for(documents.documents, uuid[], boolean, jsonb),
    documents.asked_for(documents.document_chunks, jsonb) to duly_engine;
grant execute on function documents.search_tag(), documents.tagged(integer, tsvector),
    documents.marked(integer, tsvector), documents.near(integer, text, integer), documents.near_terms(text[])
    to duly_tenant, duly_engine;
grant execute on function documents.find_passages to duly_tenant;
-- These functions run as the engine. The grants come before the change of owner, which ends the right to grant.
alter function documents.search_tag owner to duly_engine;
alter function documents.near_terms owner to duly_engine;
alter function documents.find_passages owner to duly_engine;
alter function documents.count_words owner to duly_engine;
alter function documents.discount_words owner to duly_engine;

----------------------------------------------------------------------------------------------------------------------
-- 6  Document types
--
-- Classifications with their evidence, types confirmed by people, models trained from them, and the folder of each type.
----------------------------------------------------------------------------------------------------------------------

create table documents.classifications (
    org_id uuid not null,
    classification_id uuid not null default duly.uuid7(),
    document_id uuid not null,
    version integer not null check (version > 0),
    doc_type text not null check (doc_type ~ '^[a-z][a-z0-9_]{1,39}$'),
    confidence real not null check (confidence between 0 and 1),
    -- Whether the confidence is below the threshold.
    review boolean not null,
    suggested_node uuid,
    evidence jsonb not null default '[]' check (jsonb_typeof(evidence) = 'array'),
    model_version text not null,
    -- The consent, if an external classifier was used.
    consent_given_by text,
    created_at timestamptz not null default duly.now(),
    primary key (org_id, classification_id),
    foreign key (org_id, document_id) references documents.documents on delete cascade,
    foreign key (org_id, suggested_node) references documents.nodes on delete set null (suggested_node)
);
create index on documents.classifications (org_id, document_id, classification_id);
create index on documents.classifications (org_id, suggested_node) where suggested_node is not null;
select documents.isolate('documents.classifications');

-- Types confirmed by people. The last one counts, for the document and for training.
create table documents.confirmations (
    org_id uuid not null,
    confirmation_id uuid not null default duly.uuid7(),
    document_id uuid not null,
    doc_type text not null check (doc_type ~ '^[a-z][a-z0-9_]{1,39}$'),
    confirmed_by text not null,
    confirmed_at timestamptz not null default duly.now(),
    primary key (org_id, confirmation_id),
    foreign key (org_id, document_id) references documents.documents on delete cascade
);
create index on documents.confirmations (org_id, document_id, confirmation_id);
select documents.isolate('documents.confirmations');

-- Trained models. The weights are a file of the org; the hash detects changes of it.
create table documents.class_models (
    org_id uuid not null references duly.organizations,
    model_version text not null,
    blob text,
    sha256 text not null check (sha256 ~ '^[0-9a-f]{64}$'),
    labels text[] not null,
    examples integer not null,
    -- The accuracy on held-out documents: of model and rules, and of the rules alone.
    accuracy real not null,
    rules_accuracy real not null,
    report jsonb not null,
    job_id uuid,
    active boolean not null,
    trained_at timestamptz not null default duly.now(),
    primary key (org_id, model_version),
    check (not active or blob is not null)
);
create unique index on documents.class_models (org_id) where active;
select documents.isolate('documents.class_models');

-- The folder of each document type.
create table documents.filing_rules (
    org_id uuid not null,
    doc_type text not null check (doc_type ~ '^[a-z][a-z0-9_]{1,39}$'),
    node_id uuid not null,
    set_by text not null,
    set_at timestamptz not null default duly.now(),
    primary key (org_id, doc_type),
    foreign key (org_id, node_id) references documents.nodes on delete cascade
);
create index on documents.filing_rules (org_id, node_id);
select documents.isolate('documents.filing_rules');

----------------------------------------------------------------------------------------------------------------------
-- 7  Connectors
--
-- Connected accounts of other services, the position in each of their folders, and the document of each imported file.
----------------------------------------------------------------------------------------------------------------------

create table documents.connectors (
    org_id uuid not null references duly.organizations,
    connector_id uuid not null default duly.uuid7(),
    provider text not null check (provider in ('dropbox', 'onedrive', 'gdrive')),
    name text not null check (name <> '' and length(name) <= 255),
    -- The name of the secret, never the secret.
    secret_ref text not null check (secret_ref ~ '^(env:[A-Z][A-Z0-9_]{0,63}|file:[a-z0-9][a-z0-9_.-]{0,63})$'),
    -- The name that people see.
    account text check (length(account) <= 255),
    -- The drive, if the account has several; null is its own.
    drive text check (drive ~ '^[A-Za-z0-9!_.-]{1,255}$'),
    -- The target folder. Without a foreign key: when the folder is deleted, imports must stop, and not continue into
    -- the root, which all members see.
    node_id uuid,
    created_by text not null,
    created_at timestamptz not null default duly.now(),
    disabled_at timestamptz,
    last_import_at timestamptz,
    primary key (org_id, connector_id),
    unique (org_id, name)
);
select documents.isolate('documents.connectors');

-- The position in a remote folder: everything before it is imported.
create table documents.connector_cursors (
    org_id uuid not null,
    connector_id uuid not null,
    remote_path text not null,
    cursor text not null,
    updated_at timestamptz not null default duly.now(),
    primary key (org_id, connector_id, remote_path),
    foreign key (org_id, connector_id) references documents.connectors on delete cascade
);
select documents.isolate('documents.connector_cursors');

-- Imported remote files, each at its last revision.
create table documents.connector_files (
    org_id uuid not null,
    connector_id uuid not null,
    remote_id text not null,
    revision text not null,
    remote_path text not null,
    checksum text,
    -- Null: the document was deleted. It is imported again when the file changes, or when it is requested by name.
    document_id uuid,
    version integer,
    job_id uuid not null,
    imported_at timestamptz not null default duly.now(),
    -- When the file was found deleted; the document stays.
    removed_at timestamptz,
    primary key (org_id, connector_id, remote_id),
    foreign key (org_id, connector_id) references documents.connectors on delete cascade,
    foreign key (org_id, document_id) references documents.documents on delete set null (document_id)
);
create index on documents.connector_files (org_id, document_id);
select documents.isolate('documents.connector_files');

revoke create on schema documents from duly_engine;
