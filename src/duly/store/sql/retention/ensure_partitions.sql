-- Purpose: make the partitions of the time to come. Locks: default partitions, for two seconds at most.
select duly.ensure_partitions()
