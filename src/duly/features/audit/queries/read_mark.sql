-- Purpose: how far the sealing has come, and since when entries are kept.
select m.commit_xid, m.occurred_at, m.entry_id,
       (select min(p.starts_at) from duly.partitions p where p.parent = 'audit_entries') as kept_since
from duly.audit_mark m
