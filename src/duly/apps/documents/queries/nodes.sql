-- name: list_restricted
-- Purpose: return the folders of the transaction's org in which a principal does not have this level of access.
select documents.barred(%(principal)s, %(level)s)

-- name: read_access
-- Purpose: return the folders of the transaction's org that are hidden from a principal, and those that are read-only.
select documents.barred(%(principal)s, 'read'), documents.barred(%(principal)s, 'write')

-- name: is_admin
-- Purpose: return whether a principal has every access to every folder of the transaction's org.
select documents.is_admin(%(principal)s)

-- name: is_guarded
-- Purpose: return a row if access to a folder of the transaction's org is restricted, by its own grants or inherited ones.
select 1 from documents.guards() g where g.node_id = %(node_id)s and g.guard is not null

-- name: may_grant
-- Purpose: return whether a principal may change the grants of a folder: admins, and principals with `manage` on the
-- folder that guards it. An unguarded folder is managed by admins only.
select documents.is_admin(%(principal)s) or exists (
    select from documents.guards() g
    join documents.node_grants x on x.org_id = %(org_id)s and x.node_id = g.guard
    where g.node_id = %(node_id)s and x.principal = %(principal)s and x.level = 'manage')

-- name: list_grants
-- Purpose: return the grants of a folder.
select principal, level from documents.node_grants
where org_id = %(org_id)s and node_id = %(node_id)s order by principal

-- name: set_grants
-- Purpose: replace the grants of a folder.
with removed as (
    delete from documents.node_grants
    where org_id = %(org_id)s and node_id = %(node_id)s and principal <> all(%(principals)s)
)
insert into documents.node_grants (org_id, node_id, principal, level, granted_by)
select %(org_id)s, %(node_id)s, g.principal, g.level, %(granted_by)s
from unnest(%(principals)s::text[], %(levels)s::text[]) g(principal, level)
on conflict (org_id, node_id, principal) do update set level = excluded.level, granted_by = excluded.granted_by

-- name: lock_tree
-- Purpose: serialize changes of an org's folder tree: two concurrent moves could create a cycle.
-- Locks: an advisory lock until the transaction ends.
select pg_advisory_xact_lock(hashtextextended('documents.nodes:' || %(org_id)s::text, 0))

-- name: insert
-- Purpose: insert a folder.
insert into documents.nodes (org_id, parent_id, name, created_by)
values (%(org_id)s, %(parent_id)s, %(name)s, %(created_by)s)
returning node_id

-- name: update
-- Purpose: rename or move a folder; a null name keeps the current one.
update documents.nodes set name = coalesce(%(name)s, name),
    parent_id = case when %(moves)s then %(parent_id)s else parent_id end
where org_id = %(org_id)s and node_id = %(node_id)s

-- name: delete
-- Purpose: delete an empty folder; a foreign key refuses one with content.
delete from documents.nodes where org_id = %(org_id)s and node_id = %(node_id)s

-- name: count
-- Purpose: count the folders of an org.
select count(*) from documents.nodes where org_id = %(org_id)s

-- name: count_visible
-- Purpose: count how many of these ids are visible folders. Index: the primary key.
select count(*) from documents.nodes n
where n.org_id = %(org_id)s and n.node_id = any(%(nodes)s) and n.node_id <> all(%(hidden_folders)s)

-- name: exists
-- Purpose: return a row if the folder exists.
select 1 from documents.nodes where org_id = %(org_id)s and node_id = %(node_id)s

-- name: find_by_name
-- Purpose: return the folders of a name in a parent folder, or in the root; more than one only if some are hidden from
-- other principals. Index: nodes (org_id, parent_id, name).
select n.node_id from documents.nodes n
where n.org_id = %(org_id)s and n.name = %(name)s
  and (n.parent_id = %(parent_id)s or (%(parent_id)s::uuid is null and n.parent_id is null))
order by n.node_id

-- name: is_name_taken
-- Purpose: return whether another visible folder has this name in the same parent. A null name means the current name of
-- the folder; without `moves` the parent is its current one. Index: nodes (org_id, parent_id, name).
select exists (
    select from documents.nodes n
    left join documents.nodes me on me.org_id = n.org_id and me.node_id = %(node_id)s
    where n.org_id = %(org_id)s and n.node_id is distinct from %(node_id)s and n.node_id <> all(%(hidden_folders)s)
      and n.name = coalesce(%(name)s, me.name)
      and n.parent_id is not distinct from case when %(moves)s then %(parent_id)s::uuid else me.parent_id end)

-- name: list
-- Purpose: return the visible folders of an org with their paths. A hidden folder does not hide visible ones below it:
-- its name is left out of their paths, and its id out of their parents.
with recursive tree as (
    select n.node_id, n.parent_id, n.name, n.created_by, n.created_at, 1 as depth,
           case when n.node_id <> all(%(hidden_folders)s) then n.name else '…' end as path
    from documents.nodes n where n.org_id = %(org_id)s and n.parent_id is null
    union all
    select n.node_id, n.parent_id, n.name, n.created_by, n.created_at, t.depth + 1,
           t.path || '/' || case when n.node_id <> all(%(hidden_folders)s) then n.name else '…' end
    from tree t join documents.nodes n on n.org_id = %(org_id)s and n.parent_id = t.node_id
)
select to_jsonb(t) - 'depth' || jsonb_build_object('parent_id',
    case when t.parent_id <> all(%(hidden_folders)s) then t.parent_id end)
from tree t
where t.node_id <> all(%(hidden_folders)s) and (%(node_id)s::uuid is null or t.node_id = %(node_id)s)
order by t.path

-- name: list_ancestors
-- Purpose: return a folder and the folders above it, nearest first.
with recursive up as (
    select n.node_id, n.parent_id, 1 as step from documents.nodes n
    where n.org_id = %(org_id)s and n.node_id = %(node_id)s
    union all
    select n.node_id, n.parent_id, u.step + 1
    from up u join documents.nodes n on n.org_id = %(org_id)s and n.node_id = u.parent_id
)
select node_id from up order by step

-- name: read_before_move
-- Purpose: return the number of levels of a folder with those below it, the folder that guards it now, and the one that
-- guards the new parent.
with recursive down as (
    select n.node_id, 1 as depth from documents.nodes n where n.org_id = %(org_id)s and n.node_id = %(node_id)s
    union all
    select n.node_id, d.depth + 1
    from down d join documents.nodes n on n.org_id = %(org_id)s and n.parent_id = d.node_id
), guards as materialized (
    select g.node_id, g.guard from documents.guards() g
)
select (select max(d.depth) from down d),
       (select g.guard from guards g where g.node_id = %(node_id)s),
       (select g.guard from guards g where g.node_id = %(parent_id)s)
