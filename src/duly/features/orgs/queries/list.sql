-- Purpose: the next orgs, in the order of their ids, and the database's time. Index: the primary key.
select org_id, duly.now(), name, status, created_at, updated_at
from duly.organizations
where org_id > %(after)s
order by org_id
limit %(limit)s
