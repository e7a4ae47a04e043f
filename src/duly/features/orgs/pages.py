"""The orgs: what each has of the workers, what it waits for, and what limits it."""

from __future__ import annotations

from duly.console.routing import Show
from duly.console.visit import Page, Visit
from duly.core.principal import Scope

_PAGE = 50


async def page(visit: Visit) -> Page:
    """Those that want something now, or all of them page by page."""
    now = await visit.service.overview.shares()
    everybody, after = visit.query.get("show") == "all", visit.query.get("after") or None
    listed = await visit.service.overview.all_shares(limit=_PAGE, after=after) if everybody else None
    return visit.page(
        "orgs.html",
        title=visit.t("orgs.title"),
        now=now,
        everybody=everybody,
        shares=listed.shares if listed else now.shares,
        older=visit.here(after=listed.after) if listed and listed.after else None,
        newest=visit.here(after=None) if after else None,
    )


ROUTES = (Show("/orgs", page, Scope.PLATFORM, nav="orgs.title"),)
