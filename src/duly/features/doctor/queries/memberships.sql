-- Purpose: every role that the named ones may become, directly or by way of others.
with recursive held as (
    select m.member, m.roleid from pg_catalog.pg_auth_members m
    join pg_catalog.pg_roles r on r.oid = m.member where r.rolname = any (%(roles)s)
    union
    select h.member, m.roleid from held h join pg_catalog.pg_auth_members m on m.member = h.roleid
)
select o.rolname::text as role, r.rolname::text as member_of, r.rolsuper or r.rolbypassrls as unbound
from held h
join pg_catalog.pg_roles o on o.oid = h.member
join pg_catalog.pg_roles r on r.oid = h.roleid
order by 1, 2
