"""What a module of pages declares: what it shows, and what can be done there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.responses import Response

from duly.core.principal import Scope

if TYPE_CHECKING:
    from duly.console.form import Form
    from duly.console.visit import Page, Visit

Shows = Callable[["Visit"], Awaitable["Page"]]
Acts = Callable[["Visit", "Form"], Awaitable[Response]]
Pulse = Callable[["Visit"], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Show:
    """A page: opened by GET, and live as long as it is looked at."""

    path: str
    page: Shows
    scope: Scope = Scope.READ
    """What whoever looks must be allowed. With `PLATFORM` it is for operators of the installation alone."""
    nav: str | None = None
    """The text that leads here from the menu; without it, the menu does not."""
    every: float = 5.0
    """The seconds after which it is looked at again."""
    pulse: Pulse | None = None
    """Something cheap that changes when the page does: asked instead of making the page again in vain."""
    needs: str | None = None
    """The job type without which there is no such page."""


@dataclass(frozen=True, slots=True)
class Act:
    """A change: sent by POST from one of our pages."""

    path: str
    act: Acts
    scope: Scope | None
    """What whoever wants it must be allowed; None for everybody who is logged in."""
    page: Shows | None = None
    """Shown again with what was typed if it is refused: `visit.problem` says why, `visit.form` has it."""
    needs: str | None = None
