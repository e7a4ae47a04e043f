"""How the documents of the org stand. They are searched, reviewed and read on the customers' pages."""

from __future__ import annotations

from duly.apps.documents.extraction.service import JOB_TYPE as EXTRACT
from duly.apps.documents.http.models import visitor
from duly.console.routing import Show
from duly.console.visit import ConsolePage, Visit

_AT_A_TIME = 50
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


async def page(visit: Visit) -> ConsolePage:
    """What waits for review, what is being read, what failed, and how much is kept."""
    who = visitor(visit.requester)
    standing = await visit.service.documents.standing(who)
    return visit.page(
        "document_overview.html",
        title=visit.t("nav.documents"),
        standing=standing,
        lately=await visit.service.documents.lately(who, limit=_AT_A_TIME),
        kept=_grouped(standing.documents),
        keepable=_grouped(standing.quotas.documents_max),
        stored=_size(standing.bytes),
        storable=_size(standing.quotas.bytes_max),
        at_home=not visit.platform,
    )


def _grouped(many: int) -> str:
    return f"{many:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def _size(many: float) -> str:
    unit = 0
    while many >= 1024 and unit < len(_UNITS) - 1:
        many, unit = many / 1024, unit + 1
    return f"{many:.1f} {_UNITS[unit]}" if unit else f"{many:.0f} {_UNITS[unit]}"


ROUTES = (Show("/documents", page, nav="nav.documents", needs=EXTRACT),)
