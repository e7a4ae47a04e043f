-- Purpose: what these orgs are called. Index: the primary key.
select o.org_id, o.name from duly.organizations o where o.org_id = any (%(org_ids)s)
