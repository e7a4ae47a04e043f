"""The menu of the console: the pages that the principal may open."""

from __future__ import annotations

from typing import NamedTuple

from duly.console.routing import Show
from duly.console.visit import PREFIX, Visit


class MenuEntry(NamedTuple):
    """A link of the menu."""

    text: str
    href: str
    current: str
    """The value of `aria-current`."""


class Menu:
    """The pages with a menu text, in the order of their declaration."""

    def __init__(self, pages: list[Show]) -> None:
        self._pages = [page for page in pages if page.nav]

    def entries(self, visit: Visit) -> list[MenuEntry]:
        """Return the entries that the principal may open."""
        path = visit.request.scope["path"].removeprefix(visit.request.scope.get("root_path", ""))
        path = path.removeprefix(PREFIX) or "/"
        return [
            MenuEntry(visit.t(page.nav or ""), visit.link(page.path), _aria_current(page.path, path))
            for page in self._pages
            if visit.may(page.scope)
        ]


def _aria_current(page_path: str, path: str) -> str:
    if page_path == path:
        return "page"
    return "true" if page_path != "/" and path.startswith(f"{page_path}/") else "false"
