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
    language sql stable security definer set search_path = pg_catalog, pg_temp
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

set local role duly_owner;
revoke create on schema documents from duly_engine;
