-- Lists of jobs. All others are served by what is there; only the delayed ones of an org could not be found without
-- reading those of everybody. The price: one more entry for each delayed job and each retry that waits, about 50 bytes
-- as long as it waits, and nothing for a job that may run at once.
create index scheduled_by_org on duly.scheduled (org_id, job_id);
