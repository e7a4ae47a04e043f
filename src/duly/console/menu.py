"""The menu: the pages that this visitor may open."""

from __future__ import annotations

from typing import NamedTuple

from duly.console.routing import Show
from duly.console.visit import PREFIX, Visit


class Entry(NamedTuple):
    """A way to a page."""

    text: str
    href: str
    here: str
    """What `aria-current` says."""


class Menu:
    """The pages that have a text for it, in the order of their declaration."""

    def __init__(self, pages: list[Show]) -> None:
        self._pages = [page for page in pages if page.nav]

    def of(self, visit: Visit) -> list[Entry]:
        """The menu as this visitor sees it."""
        at = visit.request.scope["path"].removeprefix(visit.request.scope.get("root_path", ""))
        place = at.removeprefix(PREFIX) or "/"
        return [
            Entry(visit.t(page.nav or ""), visit.link(page.path), _here(page.path, place))
            for page in self._pages
            if visit.may(page.scope)
        ]


def _here(path: str, place: str) -> str:
    if path == place:
        return "page"
    return "true" if path != "/" and place.startswith(f"{path}/") else "false"
