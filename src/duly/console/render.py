"""From templates to pages: every value is escaped, every text is in the visitor's language."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import timedelta
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import FileSystemLoader
from markupsafe import Markup
from starlette.responses import HTMLResponse, RedirectResponse, Response

from duly.console.assets import Assets
from duly.console.extras import Extras
from duly.console.visit import PREFIX, Page, Visit
from duly.core.principal import Scope
from duly.http.authentication import cookies
from duly.http.templating import environment
from duly.i18n import LANGUAGES, messages
from duly.pages.render import HEADERS, LANGUAGE_COOKIE, other_languages
from duly.pages.static_files import static

if TYPE_CHECKING:
    from duly.console.menu import Menu

SAID_COOKIE, THEME_COOKIE = "duly_said", "duly_theme"
THEMES = ("light", "dark")
_A_YEAR = timedelta(days=365)
_SAID_FOR = timedelta(seconds=60)


class Renderer:
    """Makes pages for visitors of one console."""

    def __init__(self, extras: Extras, menu: Menu) -> None:
        self._menu = menu
        self._strip = extras.strip
        self._messages = {
            language: messages(language).extended({key: texts[i] for key, texts in extras.words.items()})
            for i, language in enumerate(LANGUAGES)
        }
        self.assets = Assets.gathered(extras.static)
        own = [extras.templates] if extras.templates else []
        self._jinja = environment(FileSystemLoader([*_template_folders(), *own]))

    def text(self, language: str, key: str, values: Mapping[str, object]) -> str:
        """A text with its gaps filled."""
        return self._messages[language].text(key, **values)

    def has_text(self, key: str) -> bool:
        """Whether there is a text of that key."""
        return key in self._messages[LANGUAGES[0]]

    def fill(self, visit: Visit, template: str, values: Mapping[str, Any]) -> Markup:
        """A template with its values, and what every template may use."""
        everywhere = {
            "visit": visit,
            "t": visit.t,
            "link": visit.link,
            "may": visit.may,
            "csrf": self._csrf(visit),
            "problem": visit.problem,
            "form": visit.form or {},
            "has_text": self.has_text,
        }
        return Markup(self._jinja.get_template(template).render({**everywhere, **values}))  # noqa: S704

    async def body(self, visit: Visit, page: Page) -> Markup:
        """What is live of a page."""
        strip = await self._strip(visit) if self._strip else Markup()
        return strip + self.fill(visit, page.template, page.values)

    async def whole(self, visit: Visit, page: Page) -> Response:
        """The page with everything around it."""
        request, base = visit.request, visit.service.path(visit.request)
        name = page.template.removesuffix(".html")
        theme = self._theme(visit)
        values = {
            "lang": visit.language,
            "theme": theme,
            "title": page.title,
            "base": base,
            "static": base + static().place,
            "assets": base + PREFIX + self.assets.place,
            "page": name,
            "styles": [file for file in ("strip.css", f"{name}.css") if file in self.assets.files],
            "modules": [f"{name}.js"] if f"{name}.js" in self.assets.files else [],
            "menu": self._menu.of(visit),
            "role": _role(visit),
            "said": self._said(visit),
            "switches": other_languages(request, visit.language),
            "live": page.status == 200 and visit.problem is None,
            "body": await self.body(visit, page),
        }
        answer = HTMLResponse(self.fill(visit, "frame.html", values), page.status, HEADERS)
        self._remember(visit, answer, theme)
        return answer

    def done(self, visit: Visit, said: str, to: str, values: Mapping[str, object]) -> Response:
        """Go there, and be told once."""
        answer = RedirectResponse(to, 303)
        told = json.dumps([said, {name: _plain(value) for name, value in values.items()}])
        packed = base64.urlsafe_b64encode(told.encode()).decode()
        self._keep(visit, answer, SAID_COOKIE, packed, _SAID_FOR)
        return answer

    def _said(self, visit: Visit) -> str | None:
        """What a change before has left to say. Anybody may have written it: only our own texts are said."""
        try:
            key, values = json.loads(base64.urlsafe_b64decode(visit.request.cookies.get(SAID_COOKIE, "")))
            return self.text(visit.language, key, dict(values))
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
            return None

    def _theme(self, visit: Visit) -> str:
        for chosen in (visit.query.get("theme"), visit.request.cookies.get(THEME_COOKIE)):
            if chosen in THEMES:
                return chosen
        return ""

    def _remember(self, visit: Visit, answer: Response, theme: str) -> None:
        if visit.query.get("lang") in LANGUAGES:
            self._keep(visit, answer, LANGUAGE_COOKIE, visit.language, _A_YEAR)
        if visit.query.get("theme") in THEMES:
            self._keep(visit, answer, THEME_COOKIE, theme, _A_YEAR)
        if SAID_COOKIE in visit.request.cookies:
            answer.delete_cookie(SAID_COOKIE, httponly=True, samesite="lax")

    def _keep(self, visit: Visit, answer: Response, name: str, value: str, lasts: timedelta) -> None:
        secure = visit.service.secure or visit.request.url.scheme == "https"
        age = int(lasts.total_seconds())
        answer.set_cookie(name, value, max_age=age, secure=secure, httponly=True, samesite="lax")

    def _csrf(self, visit: Visit) -> str:
        token = cookies.session_token(visit.request, secure=visit.service.secure)
        return cookies.csrf_token(token) if token else ""


def _template_folders() -> list[Path]:
    """Return the folders with templates of the console and of the features."""
    root = Path(str(resources.files("duly")))
    features = sorted(root.glob("features/*/templates"))
    return [root / "console" / "templates", *features, root / "apps" / "documents" / "templates"]


def _role(visit: Visit) -> str:
    for scope, role in ((Scope.PLATFORM, "platform"), (Scope.ADMIN, "admin"), (Scope.OPERATE, "operator")):
        if visit.may(scope):
            return f"frame.role.{role}"
    return "frame.role.viewer"


def _plain(value: object) -> object:
    """What a text may be given: no format reaches into it."""
    return value if isinstance(value, int | float) else str(value)
