"""Extensions of the console by an application: pages, actions, and a strip above every page."""

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
    """Pages, actions, texts and files that an application adds to the console."""

    routes: tuple[Show | Act, ...] = ()
    strip: Strip | None = None
    """Rendered above every page and updated with it: `visit.fill("strip.html", ...)` renders a template."""
    texts: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Texts by message id, English and German."""
    templates: Path | None = None
    """A folder with templates."""
    static: Path | None = None
    """A folder with scripts and styles. The page `<name>.html` loads `<name>.css` and `<name>.js`; every page
    loads `strip.css`."""
