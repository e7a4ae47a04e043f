-- Purpose: the next jobs of all orgs that died of one kind of failure, the last to die first.
-- Index: dead_letters_everywhere. Reads `look` letters at most, and those of the same moment.
select l.org_id, l.job_id, l.dead_at
from duly.dead_letters l
where l.fingerprint = %(fingerprint)s
  and l.dead_at <= %(before_at)s and (l.dead_at, l.job_id) < (%(before_at)s, %(before_job)s)
order by l.dead_at desc, l.job_id desc
limit %(look)s
