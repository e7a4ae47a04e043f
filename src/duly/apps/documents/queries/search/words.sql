-- Purpose: the stems of words, in each language that is searched, and how common they are in the org.
--   A word without a stem is a stop word there. No rows: the org has nothing to find.
select s.tag, s.chunks, w.place, w.part, c.config::text, l.lexeme, t.df, t.df2, t.df4
from documents.search_stats s
cross join unnest(%(places)s::integer[], %(texts)s::text[], %(parts)s::boolean[]) w(place, text, part)
join (values ('german'::regconfig), ('english'), ('simple')) c(config) on c.config = 'german'::regconfig or not w.part
left join lateral unnest(to_tsvector(c.config, w.text)) l on true
left join lateral (
    select t.* from documents.search_terms t where t.org_id = s.org_id and t.lexeme = l.lexeme limit 1) t on true
where s.org_id = %(org_id)s and s.chunks > 0
