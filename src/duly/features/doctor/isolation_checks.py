"""Whether tenants are kept apart: roles, row level security, views and owners."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from duly.features.doctor import store as health
from duly.features.doctor.finding import Complaint, Finding, Verdict, judged, skipped
from duly.features.doctor.store import Row
from duly.features.doctor.target import Patient

OWNER, ENGINE, TENANT, OPERATOR, AUDITOR = ROLES = (
    "duly_owner", "duly_engine", "duly_tenant", "duly_operator", "duly_auditor"
)  # fmt: skip
_OF_OTHERS = frozenset({"pg_read_all_data", "pg_write_all_data", "pg_execute_server_program"}) | {
    "pg_read_server_files",
    "pg_write_server_files",
}
"""Roles of PostgreSQL's own that lead around the rights of the schema."""
_MINE = "(org_id = ( SELECT duly.current_org() AS current_org))"
_MINE_TYPED = "(org_id = (select duly.current_org()))"

Policy = tuple[str, bool, str, str, str | None]
"""For which commands, whether permissive, to whom, what may be seen, and what may be written."""
ISOLATED: Mapping[str, Policy] = {
    "tenant_isolation": ("*", True, TENANT, _MINE, _MINE),
    "engine_works": ("*", True, ENGINE, "true", "true"),
    "operator_reads": ("r", True, OPERATOR, "true", None),
}
"""What `duly.isolate` makes."""
LOCKED: Mapping[str, Policy] = {"owner_moves": ("*", True, OWNER, "true", "true")}
"""What `duly.lock_partition` makes."""
APPENDED: Mapping[str, Policy] = {"auditor_appends": ("*", True, AUDITOR, _MINE, _MINE)}
"""What the audit trail has besides."""


def _bad(seen: str, fix: str) -> Complaint:
    return Complaint(Verdict.FAIL, seen, fix)


async def roles(patient: Patient) -> Finding:
    """The five roles are there, and bound by the policies."""
    found = {row["role"]: row for row in await patient.read("roles", roles=list(ROLES))}
    if not found:
        return skipped("the first migration makes them: see schema")
    held = await patient.read("memberships", roles=list(ROLES))
    return judged([*_attributes(found), *_memberships(held)], "all five, bound by row level security")


def _attributes(found: Mapping[str, Row]) -> Iterator[Complaint]:
    for role in ROLES:
        if role not in found:
            yield _bad(f"{role} is missing", f"create role {role} nologin noinherit")
        elif found[role]["superuser"]:
            yield _bad(f"{role} is a superuser", f"alter role {role} nosuperuser")
        elif found[role]["bypassrls"]:
            yield _bad(f"{role} bypasses row level security", f"alter role {role} nobypassrls")


def _memberships(held: Sequence[Row]) -> Iterator[Complaint]:
    for row in held:
        role, other = row["role"], row["member_of"]
        # Functions that write for others are made by the owner and given to the engine; who may be the engine
        # may be less.
        expected = (role, other) in {(OWNER, ENGINE), (ENGINE, AUDITOR), (OWNER, AUDITOR)}
        if not expected and (row["unbound"] or other in ROLES or other in _OF_OTHERS):
            yield _bad(f"{role} may become {other}", f"revoke {other} from {role}")


async def login(patient: Patient) -> Finding:
    """Whoever logs in may take the roles that work takes."""
    found = {row["role"] for row in await patient.read("roles", roles=list(ROLES))}
    if not {ENGINE, TENANT} <= found:
        return skipped("cannot be told: see roles")
    complaints, name = [], ""
    for url in dict.fromkeys((patient.url, patient.direct_url)):
        async with health.connected(url) as conn:
            name = (await health.server(conn))["login"]
            missing = [role for role in (ENGINE, TENANT) if not await health.takes_role(conn, role)]
        complaints += [_bad(f"{name} may not become {role}", f"grant {role} to {name}") for role in missing]
    return judged(complaints, f"{name} may become {ENGINE} and {TENANT}")


async def isolation(patient: Patient) -> Finding:
    """Row level security is forced on every table of a tenant, with the schema's policies and no others."""
    tables = await patient.read("tenant_tables")
    return judged(
        [complaint for table in tables for complaint in _open_doors(table)],
        f"forced on {sum(not t['is_partition'] for t in tables)} tables and "
        f"{sum(t['is_partition'] for t in tables)} partitions",
    )


def _open_doors(table: Row) -> Iterator[Complaint]:
    name = f"duly.{table['table_name']}"
    if not table["enabled"]:
        yield _bad(f"{name} has no row level security", f"alter table {name} enable row level security")
    if not table["forced"]:
        yield _bad(f"{name} does not force it on its owner", f"alter table {name} force row level security")
    expected = LOCKED if table["is_partition"] else ISOLATED
    if table["table_name"] == "audit_entries":
        expected = {**expected, **APPENDED}
    found: dict[str, Policy] = {key: tuple(value) for key, value in table["policies"].items()}
    for policy in expected:
        if policy not in found:
            yield _bad(f"{name} has no policy {policy}", _create(name, policy, expected[policy]))
        elif found[policy] != expected[policy]:
            again = f"drop policy {policy} on {name}; {_create(name, policy, expected[policy])}"
            yield _bad(f"the policy {policy} of {name} says something else", again)
    for policy in found.keys() - expected.keys():
        yield _bad(f"{name} has another policy, {policy}", f'drop policy "{policy}" on {name}')


def _create(table: str, name: str, policy: Policy) -> str:
    command, _, role, seen, written = policy
    shown = {_MINE: _MINE_TYPED, "true": "(true)"}
    reads = " for select" if command == "r" else ""
    checked = f" with check {shown[written]}" if written else ""
    return f"create policy {name} on {table}{reads} to {role} using {shown[seen]}{checked}"


async def views(patient: Patient) -> Finding:
    """What a tenant reads through a view it reads with its own rights."""
    found = await patient.read("views")
    wrong = [f"duly.{row['view_name']}" for row in found if not row["invoker"]]
    return judged(
        (
            _bad(f"{name} runs with its owner's rights", f"alter view {name} set (security_invoker = true)")
            for name in wrong
        ),
        f"all {len(found)} run with the rights of who asks",
    )


async def owners(patient: Patient) -> Finding:
    """Everything belongs to the roles of the schema; what works for others works as the engine."""
    functions: list[dict[str, Any]] = await patient.read("functions")
    complaints = list(_strangers(await patient.read("owners")))
    for row in functions:
        name = row["function_name"]
        if row["owner"] != row["expected"]:
            fix = f"alter function {name} owner to {row['expected']}"
            complaints.append(_bad(f"{name} works with the rights of {row['owner']}", fix))
        if not row["pinned"]:
            fix = f"alter function {name} set search_path = pg_catalog, pg_temp"
            complaints.append(_bad(f"{name} looks up names where the caller says", fix))
    return judged(complaints, f"{len(functions)} functions work as {ENGINE} or {OWNER}")


def _strangers(found: Sequence[Row]) -> Iterator[Complaint]:
    for row in found:
        name = f"duly.{row['relation']}"
        yield _bad(f"{name} belongs to {row['owner']}", f"alter {row['kind']} {name} owner to {OWNER}")
