"""The doctor: the table of checks, and a run of all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import psycopg

from duly.core.errors import DulyError
from duly.features.doctor import connection_checks, isolation_checks, server_checks, work_checks
from duly.features.doctor.capacity_reader import observe
from duly.features.doctor.capacity_report import CapacityPlan, CapacityReport, assess
from duly.features.doctor.models import CheckOutcome, CheckVerdict, DoctorReport, failed, skipped
from duly.features.doctor.target import DoctorSettings, Target
from duly.jobs.application import App

_CHECK_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class Check:
    """A check, and the checks that must pass before it can run."""

    name: str
    run: Callable[[Target], Awaitable[CheckOutcome]]
    needs: tuple[str, ...] = ("connection",)


_SCHEMA = ("connection", "login", "schema")
CHECKS = (
    Check("connection", connection_checks.check_connection, needs=()),
    Check("pooler", connection_checks.check_pooler),
    Check("listen", connection_checks.check_listen, needs=("connection", "pooler")),
    Check("schema", connection_checks.check_schema),
    Check("roles", isolation_checks.check_roles),
    Check("login", isolation_checks.check_login),
    Check("isolation", isolation_checks.check_row_security, needs=_SCHEMA),
    Check("views", isolation_checks.check_views, needs=_SCHEMA),
    Check("owners", isolation_checks.check_owners, needs=_SCHEMA),
    Check("partitions", work_checks.check_partitions, needs=_SCHEMA),
    Check("rows", work_checks.check_rows, needs=_SCHEMA),
    Check("clock", work_checks.check_clocks, needs=_SCHEMA),
    Check("durability", server_checks.check_durability),
    Check("disk", server_checks.check_disk),
    Check("wal", server_checks.check_wal),
    Check("vacuum", server_checks.check_vacuum),
    Check("transactions", server_checks.check_transactions),
    Check("workers", work_checks.check_workers, needs=_SCHEMA),
    Check("backlog", work_checks.check_backlog, needs=_SCHEMA),
    Check("bridge", work_checks.check_failure_callbacks, needs=_SCHEMA),
    Check("alerts", work_checks.check_alerts, needs=_SCHEMA),
    Check("invariants", work_checks.check_invariants, needs=()),
)


class Doctor:
    """Checks an installation; changes nothing."""

    def __init__(self, app: App, settings: DoctorSettings) -> None:
        self._app = app
        self._settings = settings

    async def examine(self) -> DoctorReport:
        """Run every check once, in order. Never raises: a check that cannot run is a line as well."""
        lines: list[CheckOutcome] = []
        causes: dict[str, str] = {}
        """The checks that did not pass, and the check at the root of each."""
        async with Target(self._app, self._settings) as target:
            for check in CHECKS:
                missing = next((name for name in check.needs if name in causes), None)
                if missing is None:
                    result = await _run(check, target)
                else:
                    result = skipped(f"cannot be checked: see {causes[missing]}")
                if result.verdict in (CheckVerdict.FAIL, CheckVerdict.SKIPPED):
                    causes[check.name] = check.name if missing is None else causes[missing]
                if result.blocks_database:
                    causes["connection"] = check.name
                lines.append(replace(result, check=check.name))
        return DoctorReport(tuple(lines))

    async def capacity(self, plan: CapacityPlan | None = None) -> CapacityReport:
        """Compute what the present or a planned load needs, and what the machine could take.

        Raise for a value of the plan that is out of range, and if the database cannot be read.
        """
        plan = plan or CapacityPlan()
        plan.check()
        async with Target(self._app, self._settings) as target:
            return assess(await observe(target), plan)


async def _run(check: Check, target: Target) -> CheckOutcome:
    try:
        async with asyncio.timeout(_CHECK_TIMEOUT):
            return await check.run(target)
    except DulyError as error:
        field = f"{error.field}: " if error.field else ""
        return failed(f"{field}{error.message}", error.fix or "check the server and its URL")
    except TimeoutError:
        return failed(
            f"no response within {_CHECK_TIMEOUT:g} s", "check the network and the load of the server"
        )
    except psycopg.Error as error:
        message = " ".join(str(error).split())
        return failed(f"the database refused a statement: {message}", "check the rights of the login")
    except Exception as error:  # a crashed check must not stop the others
        return failed(f"the check crashed: {type(error).__name__}: {error}", "report it with this line")
