-- Purpose: the job types that were published, each with its policy.
select t.job_type, t.policy::text as policy from duly.job_types t order by 1
