-- Purpose: the database's time, if this org may have schedules.
select duly.now() from duly.check_org(%(org_id)s)
