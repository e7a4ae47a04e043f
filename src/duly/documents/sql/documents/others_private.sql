-- Purpose: whether the org has jobs that are private to somebody else. Their subjects lie between these two in every
-- collation, also in those that pass over a colon. Index: job_records_by_subject.
select exists (
    select from duly.jobs j
    where j.org_id = %(org_id)s and j.subject_id >= 'private' and j.subject_id < 'privatf'
      and starts_with(j.subject_id, 'private:') and j.subject_id <> %(own)s)
