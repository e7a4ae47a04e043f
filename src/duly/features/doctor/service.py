"""The table of checks, and one round of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import psycopg

from duly.core.errors import DulyError
from duly.features.doctor import connection_checks as reach
from duly.features.doctor import isolation_checks as rights
from duly.features.doctor import server_checks as server
from duly.features.doctor import work_checks as flow
from duly.features.doctor.finding import Finding, Line, Report, Verdict, failed, skipped
from duly.features.doctor.target import Circumstances, Patient
from duly.jobs.application import App

_PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Check:
    """One question, and the checks that must not have failed for it to make sense."""

    name: str
    look: Callable[[Patient], Awaitable[Finding]]
    needs: tuple[str, ...] = ("connection",)


_SCHEMA = ("connection", "login", "schema")
CHECKS = (
    Check("connection", reach.connection, needs=()),
    Check("pooler", reach.pooler),
    Check("listen", reach.listen, needs=("connection", "pooler")),
    Check("schema", reach.schema),
    Check("roles", rights.roles),
    Check("login", rights.login),
    Check("isolation", rights.isolation, needs=_SCHEMA),
    Check("views", rights.views, needs=_SCHEMA),
    Check("owners", rights.owners, needs=_SCHEMA),
    Check("partitions", flow.partitions, needs=_SCHEMA),
    Check("clock", flow.clock, needs=_SCHEMA),
    Check("durability", server.durability),
    Check("disk", server.disk),
    Check("wal", server.wal),
    Check("vacuum", server.vacuum),
    Check("transactions", server.transactions),
    Check("workers", flow.workers, needs=_SCHEMA),
    Check("backlog", flow.backlog, needs=_SCHEMA),
    Check("bridge", flow.bridge, needs=_SCHEMA),
    Check("alerts", flow.alerts, needs=_SCHEMA),
    Check("invariants", flow.invariants, needs=()),
)


class Doctor:
    """Looks at everything, changes nothing."""

    def __init__(self, app: App, around: Circumstances) -> None:
        self._app = app
        self._around = around

    async def examine(self) -> Report:
        """Every check once, in order. It raises nothing: what cannot be looked at is a line as well."""
        lines: list[Line] = []
        out_of_reach: dict[str, str] = {}
        async with Patient(self._app, self._around) as patient:
            for check in CHECKS:
                missing = next((name for name in check.needs if name in out_of_reach), None)
                if missing is None:
                    found = await _look(check, patient)
                else:
                    found = skipped(f"cannot be told: see {out_of_reach[missing]}")
                if found.verdict in (Verdict.FAIL, Verdict.SKIPPED):
                    out_of_reach[check.name] = check.name if missing is None else out_of_reach[missing]
                if found.stops:
                    out_of_reach["connection"] = check.name
                lines.append(Line(check.name, found.verdict, found.seen, found.fix))
        return Report(tuple(lines))


async def _look(check: Check, patient: Patient) -> Finding:
    try:
        async with asyncio.timeout(_PATIENCE):
            return await check.look(patient)
    except DulyError as error:
        where = f"{error.field}: " if error.field else ""
        return failed(f"{where}{error.message}", error.fix or "check the server and its address")
    except TimeoutError:
        return failed(f"no answer within {_PATIENCE:g} s", "check the network and the load of the server")
    except psycopg.Error as error:
        said = " ".join(str(error).split())
        return failed(f"the database refused to tell: {said}", "check the rights of the login, and try again")
    except Exception as error:  # one broken check must not stop the others
        return failed(f"the check itself broke: {type(error).__name__}: {error}", "report it, with this line")
