"""The demo's additions to the console: a bar with the promises, and a page to kill a worker."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup
from starlette.responses import Response

from duly.console import Extras
from duly.console.form import Form
from duly.console.routing import Act, Show
from duly.console.visit import ConsolePage, Visit
from duly.core.principal import Scope

from .fault_injection import Fault, FaultInjector
from .messages import MESSAGES
from .promise_checker import Checker, PromiseState

_HERE = Path(__file__).parent
BAR_PROMISES = ("I1", "I7", "I6", "I3", "I16")
"""The promises on the strip, in words that fit there."""


def extras(injector: FaultInjector, checker: Checker) -> Extras:
    """Return the extras of the demo's service."""

    async def page(visit: Visit) -> ConsolePage:
        return visit.page(
            "demo.html",
            title=visit.t("demo.title"),
            states=list(checker.states.values()),
            jobs=checker.jobs,
            incidents=list(injector.incidents),
            busy=any(not one.done for one in injector.incidents),
        )

    async def kill(visit: Visit, form: Form) -> Response:
        fault: Fault = "freeze" if form.get("how") == "freeze" else "kill"
        incident = await injector.inject(fault)
        values = {"worker": incident.worker, "pid": incident.pid}
        return visit.done(
            f"demo.did.{fault}", to=f"/jobs/{incident.job_id}", query={"org": incident.org_id}, **values
        )

    async def strip(visit: Visit) -> Markup:
        states = [checker.states[name] for name in BAR_PROMISES]
        return visit.fill(
            "strip.html", states=states, error=checker.error, **_totals(list(checker.states.values()))
        )

    return Extras(
        routes=(
            Show("/demo", page, scope=Scope.PLATFORM, nav="demo.title", every=1.0),
            Act("/demo/strike", kill, Scope.PLATFORM, page=page),
        ),
        strip=strip,
        texts=MESSAGES,
        templates=_HERE / "templates",
        static=_HERE / "static",
    )


def _totals(every: list[PromiseState]) -> dict[str, int]:
    return {
        "held": sum(one.verdict == "held" for one in every),
        "broken": sum(one.verdict == "broken" for one in every),
    }
