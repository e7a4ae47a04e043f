-- Search in less time: what is seldom needed is not worked out each time.

-- The folders in which somebody may look, of those they asked for; null is everywhere.
create or replace function documents.open_nodes(p_org uuid, p_principal text, p_below uuid[]) returns uuid[]
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

-- The rest runs as the engine, to whom it belongs.
grant create on schema documents to duly_engine;
set local role duly_engine;

-- Words of the transaction's org that are written much like these. Of a short word one slip is forgiven, of one
-- with nine letters and more two: so much longer or shorter may the other be.
create or replace function documents.near_terms(p_words text[])
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

-- As before, but where a filter drops little it does not make a search look at more: that is tried with a few of the
-- passages. And whether one is asked for is looked up for those that are at hand, never for all documents of the org.
create or replace function documents.find_passages(
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

set local role duly_owner;
revoke create on schema documents from duly_engine;
