"""The settings of sessions as SQL: role, org, and what the planner may use."""

from __future__ import annotations

from datetime import timedelta
from functools import lru_cache
from uuid import UUID

from duly.db.prepared import Parameters, StatementValues, parameters

_TENANT = "begin; set local role duly_tenant; set local duly.org_id = '{}'; set local jit = off"
_TENANT_SETTINGS = """
select set_config('role', 'duly_tenant', true), set_config('duly.org_id', %(org_id)s, true),
       set_config('jit', 'off', true), set_config('lock_timeout', %(lock_timeout)s, true)
"""
BEGIN_AUDITOR = _TENANT.replace("duly_tenant", "duly_auditor")
# The engine's statements need nested loops over indexes; with stale statistics the planner prefers hashes, or
# reads a whole table and materializes it.
_PLANNER_SETTINGS = {
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_seqscan": "off",
    "enable_material": "off",
    "plan_cache_mode": "force_generic_plan",
}
BEGIN_LOGIN = "begin read only; set local statement_timeout = '5s'; set local jit = off"
_ENGINE_SETTINGS = {"role": "duly_engine", "jit": "off", **_PLANNER_SETTINGS}
ENGINE_ROLE_SQL = "; ".join(f"set local {name} = {value}" for name, value in _ENGINE_SETTINGS.items())
BEGIN_ENGINE = f"begin; {ENGINE_ROLE_SQL}"
ENGINE_CONNECTION = "; ".join(f"set {name} = {value}" for name, value in _ENGINE_SETTINGS.items())
_RESET_SETTINGS = "; ".join(
    f"set local {name} to default" for name in (*_PLANNER_SETTINGS, "lock_timeout", "statement_timeout")
)
BEGIN_ONE_SNAPSHOT = "begin isolation level repeatable read"
SET_PLANNER = "select " + ", ".join(f"set_config('{n}', '{v}', true)" for n, v in _PLANNER_SETTINGS.items())


@lru_cache(maxsize=1024)
def begin_tenant_sql(org_id: UUID) -> str:
    """Return the text that opens a tenant's transaction."""
    # A UUID has no characters that could end the literal.
    return _TENANT.format(UUID(str(org_id)))


def tenant_role_sql(org_id: UUID) -> str:
    """Return the text that turns the rest of an engine's transaction into a tenant's."""
    return f"{begin_tenant_sql(org_id).removeprefix('begin; ')}; {_RESET_SETTINGS}"


@lru_cache(maxsize=1024)
def tenant_settings(org_id: UUID, lock_timeout: timedelta | None) -> tuple[str, Parameters]:
    """Return the statement that makes a transaction a tenant's."""
    milliseconds = None if lock_timeout is None else f"{lock_timeout.total_seconds() * 1000:.0f}"
    values: StatementValues = {"org_id": UUID(str(org_id)), "lock_timeout": milliseconds}
    return _TENANT_SETTINGS, parameters(_TENANT_SETTINGS, values)
