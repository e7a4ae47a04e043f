-- Purpose: whether somebody may say whom a folder is for: who manages it, and of an open one only admins.
select documents.is_admin(%(principal)s) or exists (
    select from documents.guards() g
    join documents.node_grants x on x.org_id = %(org_id)s and x.node_id = g.guard
    where g.node_id = %(node_id)s and x.principal = %(principal)s and x.level = 'manage')
