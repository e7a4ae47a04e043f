-- Purpose: drop one old partition that nobody needs, or say what keeps it; empty the default partition of old rows.
-- Locks: the parent, waited for two seconds at most; then its partition, if nobody is at it.
select * from duly.drop_expired_partitions(%(parent)s, %(keep)s)
