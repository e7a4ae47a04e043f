"""The complete catalog of a schema, including owners, grants and partitions.

The reviewed snapshot omits what differs between servers and days. This one omits nothing, to compare
databases of one server whose partitions were created for the same time.
"""

from __future__ import annotations

from typing import Any

import psycopg

_ACL = "array(select a::text from unnest({}) a order by 1)::text"
_PARTS = {
    "schema": f"""
        select n.nspowner::regrole, {_ACL.format("n.nspacl")} from pg_namespace n where n.oid = %(schema)s
    """,
    "roles": """
        select r.rolname, r.rolsuper, r.rolinherit, r.rolcreaterole, r.rolcreatedb, r.rolcanlogin,
               r.rolbypassrls,
               array(select m.roleid::regrole::text from pg_auth_members m where m.member = r.oid order by 1)
        from pg_roles r
        where r.rolname in ('duly_owner', 'duly_engine', 'duly_tenant', 'duly_operator', 'duly_auditor')
    """,
    "default privileges": f"""
        select d.defaclrole::regrole, d.defaclobjtype, {_ACL.format("d.defaclacl")} from pg_default_acl d
        where d.defaclnamespace in (0, %(schema)s)
    """,
    "relations": f"""
        select c.relname, c.relkind, c.relowner::regrole, c.relpersistence, c.reloptions, c.relrowsecurity,
               c.relforcerowsecurity, c.relreplident, {_ACL.format("c.relacl")}, pg_get_partkeydef(c.oid),
               pg_get_expr(c.relpartbound, c.oid), t.reloptions, i.inhparent::regclass,
               case when c.relkind = 'v' then pg_get_viewdef(c.oid) end
        from pg_class c
        left join pg_class t on t.oid = c.reltoastrelid
        left join pg_inherits i on i.inhrelid = c.oid
        where c.relnamespace = %(schema)s
    """,
    "columns": f"""
        select c.relname, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
               a.attidentity, a.attgenerated, a.attstorage, a.attcompression, a.attcollation::regcollation,
               a.attoptions,
               a.attislocal, a.attinhcount, {_ACL.format("a.attacl")}, pg_get_expr(d.adbin, d.adrelid)
        from pg_attribute a join pg_class c on c.oid = a.attrelid
        left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
        where c.relnamespace = %(schema)s and c.relkind <> 'i' and a.attnum > 0
    """,
    "constraints": """
        select k.conrelid::regclass, k.conname, k.contype, k.convalidated, k.condeferrable, k.conislocal,
               k.coninhcount, k.connoinherit, pg_get_constraintdef(k.oid)
        from pg_constraint k where k.connamespace = %(schema)s
    """,
    "indexes": """
        select pg_get_indexdef(i.indexrelid), i.indisprimary, i.indisvalid, i.indisready, i.indimmediate,
               i.indisclustered, i.indisreplident
        from pg_index i join pg_class c on c.oid = i.indrelid where c.relnamespace = %(schema)s
    """,
    "functions": f"""
        select pg_get_functiondef(p.oid), p.proowner::regrole, {_ACL.format("p.proacl")}
        from pg_proc p where p.pronamespace = %(schema)s
    """,
    "triggers": """
        select pg_get_triggerdef(t.oid), t.tgenabled from pg_trigger t join pg_class c on c.oid = t.tgrelid
        where c.relnamespace = %(schema)s and not t.tgisinternal
    """,
    "policies": """
        select tablename, policyname, permissive, cmd, array(select unnest(roles)::text order by 1), qual,
               with_check
        from pg_policies where schemaname = %(schema)s::regnamespace::text
    """,
    "types": f"""
        select t.typname, t.typtype, t.typowner::regrole, {_ACL.format("t.typacl")}
        from pg_type t where t.typnamespace = %(schema)s
    """,
    "sequences": """
        select s.seqrelid::regclass, s.seqtypid::regtype, s.seqstart, s.seqincrement, s.seqcache, s.seqcycle,
               d.refobjid::regclass, d.refobjsubid
        from pg_sequence s join pg_class c on c.oid = s.seqrelid
        left join pg_depend d
            on d.objid = s.seqrelid and d.classid = 'pg_class'::regclass and d.deptype in ('a', 'i')
        where c.relnamespace = %(schema)s
    """,
    "comments": """
        select pg_describe_object(d.classoid, d.objoid, d.objsubid), d.description from pg_description d
        where pg_describe_object(d.classoid, d.objoid, d.objsubid) like '%' || %(schema)s::text || '%'
    """,
    "statistics": """
        select pg_get_statisticsobjdef(s.oid) from pg_statistic_ext s where s.stxnamespace = %(schema)s
    """,
}


def catalog(conn: psycopg.Connection[Any], schema: str) -> list[str]:
    """Return one line per catalog entry."""
    lines: list[str] = []
    for title, query in _PARTS.items():
        bound = query.replace("%(schema)s", f"'{schema}'::regnamespace")
        lines += sorted(f"{title}: " + " | ".join(map(str, row)) for row in conn.execute(bound))
    return lines
