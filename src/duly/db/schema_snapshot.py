"""Dump a schema as text from the catalog, without details that differ between servers or over time."""

from __future__ import annotations

from typing import Any

import psycopg

_QUERIES = {
    "tables": """
        select c.relname, coalesce('partitioned by ' || pg_get_partkeydef(c.oid), 'table'),
               coalesce(array_to_string(c.reloptions, ' '), '')
        from pg_class c where c.relnamespace = %(schema)s::text::regnamespace and c.relkind in ('r', 'p')
          and (not c.relispartition or c.relkind = 'p')
    """,
    "columns": """
        select c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
               case when a.attnotnull then 'not null' end, pg_get_expr(d.adbin, d.adrelid)
        from pg_attribute a join pg_class c on c.oid = a.attrelid
        left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
        where c.relnamespace = %(schema)s::text::regnamespace and c.relkind in ('r', 'p', 'v')
          and a.attnum > 0 and not a.attisdropped and not c.relispartition
    """,
    # PostgreSQL 18 lists not-null constraints here; the columns contain them already.
    "constraints": """
        select c.relname, pg_get_constraintdef(k.oid)
        from pg_constraint k join pg_class c on c.oid = k.conrelid
        where c.relnamespace = %(schema)s::text::regnamespace and k.contype <> 'n' and not c.relispartition
    """,
    "indexes": """
        select c.relname, pg_get_indexdef(i.indexrelid) from pg_index i join pg_class c on c.oid = i.indrelid
        where c.relnamespace = %(schema)s::text::regnamespace and not c.relispartition
    """,
    "policies": """
        select tablename, policyname, cmd, roles::text, qual, with_check from pg_policies p
        join pg_class c on c.relname = p.tablename and c.relnamespace = %(schema)s::text::regnamespace
        where schemaname = %(schema)s::text and not c.relispartition
    """,
    "grants": """
        select table_name, grantee, string_agg(privilege_type, ' ' order by privilege_type)
        from information_schema.role_table_grants g
        join pg_class c on c.relname = g.table_name and c.relnamespace = %(schema)s::text::regnamespace
        where table_schema = %(schema)s::text and grantee in ('duly_engine', 'duly_tenant', 'duly_operator')
          and not c.relispartition
        group by 1, 2
    """,
    "functions": """
        select p.oid::regprocedure::text, case when p.prosecdef then 'as ' || p.proowner::regrole::text end,
               md5(nullif(p.prosrc, '')), coalesce(array_to_string(p.proconfig, ' '), ''),
               coalesce((select string_agg(a.grantee::regrole::text, ' ' order by a.grantee::regrole::text)
                         from aclexplode(p.proacl) a where a.grantee <> p.proowner), '')
        from pg_proc p where p.pronamespace = %(schema)s::text::regnamespace
    """,
}


def snapshot(conn: psycopg.Connection[Any], schema: str = "duly") -> str:
    """Return a text that changes only when the schema does."""
    lines: list[str] = []
    for title, query in _QUERIES.items():
        rows = sorted(
            " | ".join(str(value or "").strip() for value in row)
            for row in conn.execute(query, {"schema": schema})
        )
        lines += [f"# {title}", *(row.replace("\n", " ") for row in rows), ""]
    return "\n".join(lines)
