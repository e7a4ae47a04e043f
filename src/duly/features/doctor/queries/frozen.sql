-- Purpose: the table whose oldest transaction is the oldest, and the age at which it should be frozen.
select c.oid::regclass::text as relation, age(c.relfrozenxid) as age,
       current_setting('autovacuum_freeze_max_age')::integer as most
from pg_catalog.pg_class c where c.relkind in ('r', 'm', 't') and c.relfrozenxid <> '0'
order by 2 desc, 1 limit 1
