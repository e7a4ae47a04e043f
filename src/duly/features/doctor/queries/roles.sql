-- Purpose: those of the named roles that there are, and whether row level security holds for them.
select r.rolname::text as role, r.rolsuper as superuser, r.rolbypassrls as bypassrls
from pg_catalog.pg_roles r where r.rolname = any (%(roles)s)
