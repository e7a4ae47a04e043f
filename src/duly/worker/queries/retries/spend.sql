-- Purpose: spend retries of orgs against their dependencies; return when each group may run at the earliest.
-- A budget is the time up to which it is spent: each retry moves it on by the pace. While it is less than the slack
-- ahead, retries keep the times of their policy; beyond it they run one pace after the other.
-- Locks: budgets in the order of the document, which the caller sorts.
with t as materialized (
    select * from json_to_recordset(%(spending)s::json) as t(org_id uuid, dependency text, retries integer)
), spent as (
    insert into duly.retry_budgets as b (org_id, dependency, spent_until)
    select t.org_id, t.dependency, duly.now() + %(pace)s * t.retries from t order by t.org_id, t.dependency
    on conflict (org_id, dependency) do update set
        spent_until = greatest(b.spent_until, duly.now()) + (excluded.spent_until - duly.now())
    returning b.org_id, b.dependency, b.spent_until
)
select s.org_id, s.dependency, s.spent_until - %(pace)s * t.retries - %(slack)s from spent s join t using (org_id, dependency)
