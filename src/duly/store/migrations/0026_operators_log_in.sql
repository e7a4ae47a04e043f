-- Who looks after the installation by a token logs in as well: for an hour, and in the system's org, where nobody is a
-- member. Log-ins are few, and live for hours: looking at all of them takes no time.
alter table duly.sessions add column operator_id text;
alter table duly.sessions drop constraint sessions_check;
alter table duly.sessions add constraint sessions_stand_for_one
    check (num_nonnulls(key_id, user_id, operator_id) = 1);
alter table duly.sessions add constraint sessions_of_operators
    check (operator_id is null or org_id = '00000000-0000-7000-8000-00000000d017');
grant select (operator_id) on duly.sessions to duly_tenant, duly_operator;
