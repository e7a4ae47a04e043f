"""The console page of orgs: their shares of the workers, queued jobs and limits."""

from __future__ import annotations

from duly.console.routing import Show
from duly.console.visit import ConsolePage, Visit
from duly.core.principal import Scope

_PAGE_SIZE = 50


async def orgs_page(visit: Visit) -> ConsolePage:
    """Show the active orgs, or all orgs page by page."""
    active = await visit.service.overview.shares()
    show_all, after = visit.query.get("show") == "all", visit.query.get("after") or None
    page = await visit.service.overview.all_shares(limit=_PAGE_SIZE, after=after) if show_all else None
    return visit.page(
        "orgs.html",
        title=visit.t("orgs.title"),
        active=active,
        show_all=show_all,
        shares=page.shares if page else active.shares,
        older=visit.here(after=page.after) if page and page.after else None,
        newest=visit.here(after=None) if after else None,
    )


ROUTES = (Show("/orgs", orgs_page, Scope.PLATFORM, nav="orgs.title"),)
