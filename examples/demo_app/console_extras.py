"""What the demo adds to the console: a strip with the promises, and a page to kill a worker from."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup
from starlette.responses import Response

from duly.console import Extras
from duly.console.form import Form
from duly.console.routing import Act, Show
from duly.console.visit import Page, Visit
from duly.core.principal import Scope

from .checking import Checker, Standing
from .killing import How, Killer
from .words import WORDS

_HERE = Path(__file__).parent
SHORT = ("I1", "I7", "I6", "I3", "I16")
"""The promises on the strip, in words that fit there."""


def extras(killer: Killer, checker: Checker) -> Extras:
    """For the service of the demo alone: nobody else has these pages."""

    async def page(visit: Visit) -> Page:
        return visit.page(
            "demo.html",
            title=visit.t("demo.title"),
            standings=list(checker.standings.values()),
            jobs=checker.jobs,
            incidents=list(killer.incidents),
            busy=any(not one.over for one in killer.incidents),
        )

    async def kill(visit: Visit, form: Form) -> Response:
        how: How = "freeze" if form.get("how") == "freeze" else "kill"
        done = await killer.strike(how)
        told = {"worker": done.worker, "pid": done.pid}
        return visit.done(f"demo.did.{how}", to=f"/jobs/{done.job_id}", query={"org": done.org_id}, **told)

    async def strip(visit: Visit) -> Markup:
        shown = [checker.standings[name] for name in SHORT]
        return visit.fill(
            "strip.html", shown=shown, trouble=checker.trouble, **_sums(list(checker.standings.values()))
        )

    return Extras(
        routes=(
            Show("/demo", page, scope=Scope.PLATFORM, nav="demo.title", every=1.0),
            Act("/demo/strike", kill, Scope.PLATFORM, page=page),
        ),
        strip=strip,
        words=WORDS,
        templates=_HERE / "templates",
        static=_HERE / "static",
    )


def _sums(every: list[Standing]) -> dict[str, int]:
    return {
        "held": sum(one.verdict == "held" for one in every),
        "broken": sum(one.verdict == "broken" for one in every),
    }
