"""The console page of documents. Search, review and reading are on the customer pages."""

from __future__ import annotations

from duly.apps.documents.extraction.service import JOB_TYPE as EXTRACT
from duly.apps.documents.request_models import document_principal
from duly.console.routing import Show
from duly.console.visit import ConsolePage, Visit

_PAGE_SIZE = 50
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


async def page(visit: Visit) -> ConsolePage:
    """Show documents to review, active and failed extractions, and the usage of the org."""
    principal, documents = document_principal(visit.requester), visit.service.documents
    overview = await documents.overview(principal)
    return visit.page(
        "document_overview.html",
        title=visit.t("nav.documents"),
        overview=overview,
        recent=await documents.recent_extractions(principal, limit=_PAGE_SIZE),
        documents=_grouped(overview.documents),
        documents_max=_grouped(overview.quotas.documents_max),
        bytes=_size(overview.bytes),
        bytes_max=_size(overview.quotas.bytes_max),
        at_home=not visit.platform,
    )


def _grouped(count: int) -> str:
    return f"{count:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def _size(size: float) -> str:
    unit = 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.1f} {_UNITS[unit]}" if unit else f"{size:.0f} {_UNITS[unit]}"


ROUTES = (Show("/documents", page, nav="nav.documents", needs=EXTRACT),)
