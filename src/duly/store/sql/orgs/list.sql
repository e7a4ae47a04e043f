-- Purpose: the next orgs, in the order of their ids. Index: the primary key.
select org_id, duly.now() from duly.organizations where org_id > %(after)s order by org_id limit %(limit)s
