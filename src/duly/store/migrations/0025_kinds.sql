-- Jobs by the kind of failure they died of, resolved or not: of an org, and of all of them. Whoever writes a dead letter
-- waits for these, and nobody else; letters are few, so that is a moment.
create index dead_letters_of_kind on duly.dead_letters (org_id, fingerprint, dead_at desc, job_id desc);
create index dead_letters_everywhere on duly.dead_letters (fingerprint, dead_at desc, job_id desc);
