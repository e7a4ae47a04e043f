"""Checks of tenant isolation: roles, row level security, views and owners."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from duly.features.doctor import store
from duly.features.doctor.models import CheckOutcome, CheckProblem, result_of, skipped
from duly.features.doctor.store import Row
from duly.features.doctor.target import Target

OWNER, ENGINE, TENANT, OPERATOR, AUDITOR = ROLES = (
    "duly_owner", "duly_engine", "duly_tenant", "duly_operator", "duly_auditor"
)  # fmt: skip
_POWERFUL_ROLES = frozenset({
    "pg_read_all_data", "pg_write_all_data", "pg_execute_server_program", "pg_read_server_files",
    "pg_write_server_files",
})  # fmt: skip
"""Roles of PostgreSQL that bypass the rights of the schema."""
_EXPECTED_MEMBERSHIPS = {(OWNER, ENGINE), (ENGINE, AUDITOR), (OWNER, AUDITOR)}
"""The owner creates functions of the engine; the engine may take the role with fewer rights."""
_OWN_ORG = "(org_id = ( SELECT duly.current_org() AS current_org))"
_POLICY_SQL = {_OWN_ORG: "(org_id = (select duly.current_org()))", "true": "(true)"}
"""Conditions as the catalog prints them, and as they are written."""

Policy = tuple[str, bool, str, str, str | None]
"""Command, whether permissive, role, `using` and `with check`."""
TABLE_POLICIES: Mapping[str, Policy] = {
    "tenant_isolation": ("*", True, TENANT, _OWN_ORG, _OWN_ORG),
    "engine_works": ("*", True, ENGINE, "true", "true"),
    "operator_reads": ("r", True, OPERATOR, "true", None),
}
"""The policies that `duly.isolate` creates."""
PARTITION_POLICIES: Mapping[str, Policy] = {"owner_moves": ("*", True, OWNER, "true", "true")}
"""The policies that `duly.lock_partition` creates."""
AUDIT_POLICIES: Mapping[str, Policy] = {"auditor_appends": ("*", True, AUDITOR, _OWN_ORG, _OWN_ORG)}
"""The further policies of the audit trail."""


async def check_roles(target: Target) -> CheckOutcome:
    """Check that the five roles exist, and that row level security binds them."""
    roles = {row["role"]: row for row in await target.read("list_roles", roles=list(ROLES))}
    if not roles:
        return skipped("the first migration creates them: see schema")
    memberships = await target.read("list_memberships", roles=list(ROLES))
    problems = [*_attribute_problems(roles), *_membership_problems(memberships)]
    return result_of(problems, "all five, bound by row level security")


def _attribute_problems(roles: Mapping[str, Row]) -> Iterator[CheckProblem]:
    for role in ROLES:
        if role not in roles:
            yield CheckProblem(f"{role} is missing", f"create role {role} nologin noinherit")
        elif roles[role]["superuser"]:
            yield CheckProblem(f"{role} is a superuser", f"alter role {role} nosuperuser")
        elif roles[role]["bypassrls"]:
            yield CheckProblem(f"{role} bypasses row level security", f"alter role {role} nobypassrls")


def _membership_problems(memberships: Sequence[Row]) -> Iterator[CheckProblem]:
    for row in memberships:
        role, other = row["role"], row["member_of"]
        dangerous = row["unbound"] or other in ROLES or other in _POWERFUL_ROLES
        if dangerous and (role, other) not in _EXPECTED_MEMBERSHIPS:
            yield CheckProblem(f"{role} may become {other}", f"revoke {other} from {role}")


async def check_login(target: Target) -> CheckOutcome:
    """Check that the login may take the roles of the engine and of tenants, at both URLs."""
    roles = {row["role"] for row in await target.read("list_roles", roles=list(ROLES))}
    if not {ENGINE, TENANT} <= roles:
        return skipped("cannot be checked: see roles")
    problems, login = [], ""
    for url in dict.fromkeys((target.url, target.direct_url)):
        async with store.connect(url) as conn:
            login = (await store.read_server(conn))["login"]
            missing = [role for role in (ENGINE, TENANT) if not await store.can_set_role(conn, role)]
        problems += [
            CheckProblem(f"{login} may not become {role}", f"grant {role} to {login}") for role in missing
        ]
    return result_of(problems, f"{login} may become {ENGINE} and {TENANT}")


async def check_row_security(target: Target) -> CheckOutcome:
    """Check that row level security is forced on every tenant table, with exactly the schema's policies."""
    tables = await target.read("list_tenant_tables")
    partitions = sum(table["is_partition"] for table in tables)
    return result_of(
        [problem for table in tables for problem in _table_problems(table)],
        f"forced on {len(tables) - partitions} tables and {partitions} partitions",
    )


def _table_problems(table: Row) -> Iterator[CheckProblem]:
    name = f"duly.{table['table_name']}"
    if not table["enabled"]:
        fix = f"alter table {name} enable row level security"
        yield CheckProblem(f"{name} has no row level security", fix)
    if not table["forced"]:
        fix = f"alter table {name} force row level security"
        yield CheckProblem(f"{name} does not force row level security on its owner", fix)
    expected = PARTITION_POLICIES if table["is_partition"] else TABLE_POLICIES
    if table["table_name"] == "audit_entries":
        expected = {**expected, **AUDIT_POLICIES}
    actual: dict[str, Policy] = {key: tuple(value) for key, value in table["policies"].items()}
    for policy, definition in expected.items():
        create = _create_policy(name, policy, definition)
        if policy not in actual:
            yield CheckProblem(f"{name} has no policy {policy}", create)
        elif actual[policy] != definition:
            fix = f"drop policy {policy} on {name}; {create}"
            yield CheckProblem(f"the policy {policy} of {name} was changed", fix)
    for policy in actual.keys() - expected.keys():
        yield CheckProblem(f"{name} has another policy, {policy}", f'drop policy "{policy}" on {name}')


def _create_policy(table: str, name: str, policy: Policy) -> str:
    command, _, role, using, with_check = policy
    reads = " for select" if command == "r" else ""
    check = f" with check {_POLICY_SQL[with_check]}" if with_check else ""
    return f"create policy {name} on {table}{reads} to {role} using {_POLICY_SQL[using]}{check}"


async def check_views(target: Target) -> CheckOutcome:
    """Check that views for tenants run with the rights of the reader."""
    views = await target.read("list_views")
    names = [f"duly.{row['view_name']}" for row in views if not row["invoker"]]
    return result_of(
        (
            CheckProblem(
                f"{name} runs with its owner's rights", f"alter view {name} set (security_invoker = true)"
            )
            for name in names
        ),
        f"all {len(views)} run with the rights of the reader",
    )


async def check_owners(target: Target) -> CheckOutcome:
    """Check that tables, views and security definer functions belong to the roles of the schema."""
    functions = await target.read("list_functions")
    problems = [*_owner_problems(await target.read("list_foreign_owners")), *_function_problems(functions)]
    return result_of(problems, f"{len(functions)} functions run as {ENGINE} or {OWNER}")


def _owner_problems(relations: Sequence[Row]) -> Iterator[CheckProblem]:
    for row in relations:
        name = f"duly.{row['relation']}"
        yield CheckProblem(
            f"{name} belongs to {row['owner']}", f"alter {row['kind']} {name} owner to {OWNER}"
        )


def _function_problems(functions: Sequence[Row]) -> Iterator[CheckProblem]:
    for row in functions:
        name, owner, expected = row["function_name"], row["owner"], row["expected"]
        if owner != expected:
            fix = f"alter function {name} owner to {expected}"
            yield CheckProblem(f"{name} runs with the rights of {owner}", fix)
        if not row["pinned"]:
            fix = f"alter function {name} set search_path = pg_catalog, pg_temp"
            yield CheckProblem(f"{name} uses the search_path of its caller", fix)
