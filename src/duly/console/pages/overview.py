"""The first page: whether anything is wrong, and where."""

from __future__ import annotations

from duly.console.routing import Show
from duly.console.visit import Page, Visit


async def page(visit: Visit) -> Page:
    """What there is to do, what is being done, and what went wrong."""
    return visit.page("overview.html", title=visit.t("overview.title"))


ROUTES = (Show("/", page, nav="overview.title"),)
