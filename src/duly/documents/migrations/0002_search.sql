-- What search finds: the passages of documents, their words, and how common each word is in its org.
-- The words of an org stand in the index under its own number, so that orgs do not share entries: what others
-- have costs nothing. The counts follow the words by triggers, so that they are right whoever deletes what.

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

-- One row an org: its number, and how much there is to find. Whoever changes its words holds this row.
create table documents.search_stats (
    org_id uuid primary key,
    tag integer not null generated always as identity unique,
    chunks bigint not null default 0,
    words bigint not null default 0
);

-- Words for a search: those of a passage (D), the parts of its compounds (C), those of the document's name (B).
-- A document without passages has its name in place -1. They lie apart from the text, since each search reads
-- hundreds of them and shows twenty.
create table documents.chunk_terms (
    org_id uuid not null,
    document_id uuid not null,
    chunk_index integer not null check (chunk_index >= -1),
    words integer not null,
    tsv tsvector not null,
    primary key (org_id, document_id, chunk_index),
    foreign key (org_id, document_id) references documents.documents on delete cascade
    -- Ranking looks at them word by word: nothing is to be unpacked each time.
) with (toast_tuple_target = 8160);
-- Without a list of pending entries, which every search would have to read.
create index chunk_terms_tsv on documents.chunk_terms using gin (tsv) with (fastupdate = off);

-- Where a slip of the pen leads to: a word of so many letters that is one letter away shares a key. Of long words
-- the beginning and the end have keys, so that two slips leave one of them within reach.
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

-- In how many passages of the org a word is: at all, at least twice, at least four times.
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

select documents.isolate(t::regclass) from unnest(array[
    'documents.document_chunks', 'documents.search_stats', 'documents.chunk_terms', 'documents.search_terms'
]) t;
-- Counts are written by the triggers alone, and words are written once.
revoke insert, update, delete on documents.search_stats, documents.search_terms from duly_tenant;
revoke update on documents.chunk_terms from duly_tenant, duly_engine;

-- The org's number. Until the end of the transaction nobody else changes words of this org.
create function documents.search_tag() returns integer
    language sql volatile security definer set search_path = pg_catalog, pg_temp
begin atomic
    insert into documents.search_stats (org_id) select duly.current_org() where duly.current_org() is not null
    on conflict (org_id) do update set chunks = search_stats.chunks
    returning tag;
end;

-- Words under the org's number.
create function documents.tagged(p_tag integer, p_words tsvector) returns tsvector
    language sql immutable parallel safe
return regexp_replace(p_words::text, '(^| )''', '\1''' || p_tag || '.', 'g')::tsvector;

-- What is there twice or four times stands in the index once more: of a common word only those are looked at.
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

-- Words of the transaction's org that are written much like these.
create function documents.near_terms(p_words text[])
returns table (word text, lexeme text, df integer, df2 integer, df4 integer)
    language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
    select w.word, t.lexeme, t.df, t.df2, t.df4
    from documents.search_stats s
    cross join unnest(p_words) w(word)
    cross join lateral (
        select t.lexeme, t.df, t.df2, t.df4
        -- Fenced, so that the index on slips is the only way.
        from (select * from documents.search_terms t where t.near && array(
                  select unnest(documents.near(s.tag, w.word, l))
                  from generate_series(length(w.word) - 2, length(w.word) + 2) l) offset 0) t
        where t.org_id = s.org_id
        order by left(t.lexeme, 1) <> left(w.word, 1), abs(length(t.lexeme) - length(w.word)), t.df desc, t.lexeme
        limit 60) t
    where s.org_id = duly.current_org();
end;

-- Whether a document is asked for: in one of these folders or in none of all, of a kind, of a time, with this in
-- its metadata. What is null was not asked about.
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

-- The folders in which somebody may look, of those they asked for; null is everywhere.
create function documents.open_nodes(p_org uuid, p_principal text, p_below uuid[]) returns uuid[]
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_barred uuid[] := documents.barred(p_principal, 'read');
begin
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

-- The best passages of the transaction's org for a search, as the searcher may see them.
-- Row level security would keep the index from being used, since `@@` may tell what it saw; so this runs as the
-- engine, and names the org and the folders itself.
--   p_any, p_all   what to look at: all of the first, and so many of the second
--   p_wide         instead of p_any, where a filter will drop much of it
--   p_whole        everything that fits, for a few documents, of which all is looked at
--   p_terms        what it is ranked by (BM25), each with its weight
-- `complete` says whether all that fits was looked at, so that `total` is all there is.
create function documents.find_passages(
    p_principal text, p_any tsquery, p_all tsquery, p_wide tsquery, p_whole tsquery, p_most integer,
    p_terms tsquery[], p_weights float8[], p_filters jsonb, p_grouped boolean, p_limit integer, p_offset integer
) returns table (document_id uuid, chunk_index integer, score float8, total bigint, complete boolean)
    language plpgsql stable security definer rows 20 set search_path = pg_catalog, pg_temp
    set jit = off set work_mem = '16MB'
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
    v_any tsquery := case when v_narrow then p_wide else p_any end;
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
               and documents.asked_for(d, v_nodes, v_root, p_filters)))
         limit 4 * p_most)
        union all
        (select t.document_id, t.chunk_index, t.words, t.tsv
         from (select * from documents.chunk_terms t
               where not v_few and t.tsv @@ p_all and (v_any is null or not t.tsv @@ v_any) offset 0) t
         where t.org_id = v_org and (not v_narrow or exists (
             select from documents.documents d
             where d.org_id = v_org and d.document_id = t.document_id
               and (v_named is null or d.document_id = any(v_named))
               and documents.asked_for(d, v_nodes, v_root, p_filters)))
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
-- These work for callers who may not: they run as the engine. Rights are given while the owner still can.
grant create on schema documents to duly_engine;
alter function documents.search_tag owner to duly_engine;
alter function documents.near_terms owner to duly_engine;
alter function documents.find_passages owner to duly_engine;
alter function documents.count_words owner to duly_engine;
alter function documents.discount_words owner to duly_engine;
revoke create on schema documents from duly_engine;
