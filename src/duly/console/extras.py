"""What an application may add to the console: pages, actions, and a strip on top of every page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

if TYPE_CHECKING:
    from duly.console.routing import Act, Show
    from duly.console.visit import Visit

Strip = Callable[["Visit"], Awaitable[Markup]]


@dataclass(frozen=True, slots=True)
class Extras:
    """Beside what Duly shows."""

    routes: tuple[Show | Act, ...] = ()
    strip: Strip | None = None
    """Shown above every page, and live with it: `visit.fill("strip.html", ...)` makes it from a template."""
    words: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Texts by their keys, English and German."""
    templates: Path | None = None
    """A folder with templates of its own."""
    static: Path | None = None
    """A folder with modules and styles; `<name>.css` and `<name>.js` are loaded by the page `<name>.html`,
    and `strip.css` by every page."""
