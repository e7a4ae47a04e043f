-- Purpose: the next jobs of an org that died of one kind of failure, the last to die first.
-- Index: dead_letters_of_kind. Reads `look` letters at most, and those of the same moment.
select l.job_id, l.dead_at as at
from duly.dead_letters l
where l.org_id = %(org_id)s and l.fingerprint = %(fingerprint)s
  and l.dead_at <= %(before_at)s and (l.dead_at, l.job_id) < (%(before_at)s, %(before_job)s)
order by l.dead_at desc, l.job_id desc
limit %(look)s
