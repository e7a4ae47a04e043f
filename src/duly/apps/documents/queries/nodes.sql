-- name: list_restricted
-- Purpose: the folders of the transaction's org that are closed to somebody.
select documents.barred(%(principal)s, %(level)s)

-- name: change
-- Purpose: another name or another place for a folder.
update documents.nodes set name = coalesce(%(name)s, name),
    parent_id = case when %(moves)s then %(parent_id)s else parent_id end
where org_id = %(org_id)s and node_id = %(node_id)s

-- name: count
-- Purpose: how many folders an org has.
select count(*) from documents.nodes where org_id = %(org_id)s

-- name: count_visible
-- Purpose: how many of these are folders that are open. Index: the primary key.
select count(*) from documents.nodes n
where n.org_id = %(org_id)s and n.node_id = any(%(nodes)s) and n.node_id <> all(%(hidden_folders)s)

-- name: delete
-- Purpose: an empty folder.
delete from documents.nodes where org_id = %(org_id)s and node_id = %(node_id)s

-- name: exists
-- Purpose: whether there is such a folder.
select 1 from documents.nodes where org_id = %(org_id)s and node_id = %(node_id)s

-- name: find
-- Purpose: folders of that name in another, or in the root: one, unless some are closed to others. Index: nodes (org_id, parent_id, name).
select n.node_id from documents.nodes n
where n.org_id = %(org_id)s and n.name = %(name)s
  and (n.parent_id = %(parent_id)s or (%(parent_id)s::uuid is null and n.parent_id is null))
order by n.node_id

-- name: grants
-- Purpose: whom a folder is for.
select principal, level from documents.node_grants
where org_id = %(org_id)s and node_id = %(node_id)s order by principal

-- name: insert
-- Purpose: a new folder.
insert into documents.nodes (org_id, parent_id, name, created_by)
values (%(org_id)s, %(parent_id)s, %(name)s, %(created_by)s)
returning node_id

-- name: is_admin
-- Purpose: whether somebody may do everything everywhere in the transaction's org.
select documents.is_admin(%(principal)s)

-- name: is_guarded
-- Purpose: whether a folder of the transaction's org is for some only; no row if it is for all.
select 1 from documents.guards() g where g.node_id = %(node_id)s and g.guard is not null

-- name: lock_all
-- Purpose: whoever changes the tree of an org does so one after the other: two moves could make a circle.
-- Locks: an advisory one, until the end of the transaction.
select pg_advisory_xact_lock(hashtextextended('documents.nodes:' || %(org_id)s::text, 0))

-- name: may_grant
-- Purpose: whether somebody may say whom a folder is for: who manages it, and of an open one only admins.
select documents.is_admin(%(principal)s) or exists (
    select from documents.guards() g
    join documents.node_grants x on x.org_id = %(org_id)s and x.node_id = g.guard
    where g.node_id = %(node_id)s and x.principal = %(principal)s and x.level = 'manage')

-- name: name_taken
-- Purpose: whether another folder that is open has this name in the same place; null means the name that it has, or, if
-- it does not move, the place where it is. Index: nodes (org_id, parent_id, name).
select exists (
    select from documents.nodes n
    left join documents.nodes me on me.org_id = n.org_id and me.node_id = %(node_id)s
    where n.org_id = %(org_id)s and n.node_id is distinct from %(node_id)s and n.node_id <> all(%(hidden_folders)s)
      and n.name = coalesce(%(name)s, me.name)
      and n.parent_id is not distinct from case when %(moves)s then %(parent_id)s::uuid else me.parent_id end)

-- name: read_access
-- Purpose: the folders of the transaction's org that are closed to somebody, and those in which they may change nothing.
select documents.barred(%(principal)s, 'read'), documents.barred(%(principal)s, 'write')
