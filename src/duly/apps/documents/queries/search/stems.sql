-- Purpose: the stems of single words, for showing what was found.
select w.word, array(
    select distinct l.lexeme from (values ('german'::regconfig), ('english'), ('simple')) c(config)
    cross join unnest(to_tsvector(c.config, w.word)) l)
from unnest(%(words)s::text[]) w(word)
