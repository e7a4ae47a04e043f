"""Routes of the console: a module of pages declares `Show` and `Act` in its `ROUTES`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.responses import Response

from duly.core.principal import Scope

if TYPE_CHECKING:
    from duly.console.form import Form
    from duly.console.visit import ConsolePage, Visit

PageFunction = Callable[["Visit"], Awaitable["ConsolePage"]]
ActFunction = Callable[["Visit", "Form"], Awaitable[Response]]
PulseFunction = Callable[["Visit"], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Show:
    """A page: rendered for GET, and updated live while it is open."""

    path: str
    page: PageFunction
    scope: Scope = Scope.READ
    """The required scope; `PLATFORM` restricts the page to operators of the installation."""
    nav: str | None = None
    """The message id of the menu text; None leaves the page out of the menu."""
    every: float = 5.0
    """Seconds between two updates."""
    pulse: PulseFunction | None = None
    """A cheap value that changes whenever the page does: the page is rendered again only if it changed."""
    needs: str | None = None
    """The job type that must be registered for the page to exist."""


@dataclass(frozen=True, slots=True)
class Act:
    """A change: a form that one of the pages submits by POST."""

    path: str
    act: ActFunction
    scope: Scope | None
    """The required scope; None admits every signed-in principal."""
    page: PageFunction | None = None
    """The page to render if the change is rejected; `visit.problem` and `visit.form` hold error and input."""
    needs: str | None = None
    """The job type that must be registered for the change to exist."""
