"""Rendering of the console: templates in the language of the visit, every value escaped."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from datetime import timedelta
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import FileSystemLoader
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse, RedirectResponse, Response

from duly.console.extras import Extras
from duly.console.visit import PREFIX, ConsolePage, Visit
from duly.core.principal import Scope
from duly.http.authentication import cookies, csrf
from duly.http.templating import environment
from duly.i18n import LANGUAGES, messages
from duly.pages.render import HEADERS, LANGUAGE_COOKIE, other_languages
from duly.pages.static_files import StaticFiles, static

if TYPE_CHECKING:
    from duly.console.menu import Menu

FLASH_COOKIE, THEME_COOKIE = "duly_flash", "duly_theme"
THEMES = ("light", "dark")
_ONE_YEAR = timedelta(days=365)
_FLASH_TTL = timedelta(seconds=60)
_UTC_TIME = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) UTC")


class Renderer:
    """Renders the pages of one console."""

    def __init__(self, extras: Extras, menu: Menu) -> None:
        self._menu = menu
        self._strip = extras.strip
        self._messages = {
            language: messages(language).extended({key: texts[i] for key, texts in extras.texts.items()})
            for i, language in enumerate(LANGUAGES)
        }
        root = resources.files("duly.console").joinpath("static")
        self.assets = StaticFiles.read(root, *([extras.static] if extras.static else []))
        folders = [*_template_folders(), *([extras.templates] if extras.templates else [])]
        self._jinja = environment(FileSystemLoader(folders))
        self._jinja.filters["local_times"] = local_times

    def text(self, language: str, message_id: str, values: Mapping[str, object]) -> str:
        """Return a text with its gaps filled."""
        return self._messages[language].text(message_id, **values)

    def has_text(self, message_id: str) -> bool:
        """Return whether there is such a message."""
        return message_id in self._messages[LANGUAGES[0]]

    def fill(self, visit: Visit, template: str, values: Mapping[str, Any]) -> Markup:
        """Render a template with its values and those that every template has."""
        common = {
            "visit": visit,
            "t": visit.t,
            "link": visit.link,
            "may": visit.may,
            "csrf": self._csrf(visit),
            "problem": visit.problem,
            "form": visit.form or {},
            "has_text": self.has_text,
        }
        return Markup(self._jinja.get_template(template).render({**common, **values}))  # noqa: S704

    async def body(self, visit: Visit, page: ConsolePage) -> Markup:
        """Render the part of a page that is updated live."""
        strip = await self._strip(visit) if self._strip else Markup()
        return strip + self.fill(visit, page.template, page.values)

    async def response(self, visit: Visit, page: ConsolePage) -> Response:
        """Render a page with the frame around it."""
        request, base = visit.request, visit.service.path(visit.request)
        name = page.template.removesuffix(".html")
        theme = self._theme(visit)
        values = {
            "lang": visit.language,
            "theme": theme,
            "title": page.title,
            "base": base,
            "static": base + static().path,
            "assets": base + PREFIX + self.assets.path,
            "page": name,
            "styles": [file for file in ("strip.css", f"{name}.css") if file in self.assets.files],
            "modules": [f"{name}.js"] if f"{name}.js" in self.assets.files else [],
            "menu": self._menu.entries(visit),
            "role": _role(visit),
            "flash": self._flash(visit),
            "languages": other_languages(request, visit.language),
            "live": page.status == 200 and visit.problem is None,
            "body": await self.body(visit, page),
        }
        response = HTMLResponse(self.fill(visit, "frame.html", values), page.status, HEADERS)
        self._set_cookies(visit, response, theme)
        return response

    def done(self, visit: Visit, message_id: str, to: str, values: Mapping[str, object]) -> Response:
        """Redirect to a page that shows the message once."""
        response = RedirectResponse(to, 303)
        flash = json.dumps([message_id, {name: _plain(value) for name, value in values.items()}])
        packed = base64.urlsafe_b64encode(flash.encode()).decode()
        self._set_cookie(visit, response, FLASH_COOKIE, packed, _FLASH_TTL)
        return response

    def _flash(self, visit: Visit) -> str | None:
        """Return the message of the last change. The cookie can be forged: only catalogue texts are shown."""
        try:
            packed = visit.request.cookies.get(FLASH_COOKIE, "")
            message_id, values = json.loads(base64.urlsafe_b64decode(packed))
            return self.text(visit.language, message_id, dict(values))
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
            return None

    def _theme(self, visit: Visit) -> str:
        for chosen in (visit.query.get("theme"), visit.request.cookies.get(THEME_COOKIE)):
            if chosen in THEMES:
                return chosen
        return ""

    def _set_cookies(self, visit: Visit, response: Response, theme: str) -> None:
        if visit.query.get("lang") in LANGUAGES:
            self._set_cookie(visit, response, LANGUAGE_COOKIE, visit.language, _ONE_YEAR)
        if visit.query.get("theme") in THEMES:
            self._set_cookie(visit, response, THEME_COOKIE, theme, _ONE_YEAR)
        if FLASH_COOKIE in visit.request.cookies:
            response.delete_cookie(FLASH_COOKIE, httponly=True, samesite="lax")

    def _set_cookie(self, visit: Visit, response: Response, name: str, value: str, ttl: timedelta) -> None:
        secure = visit.service.secure or visit.request.url.scheme == "https"
        age = int(ttl.total_seconds())
        response.set_cookie(name, value, max_age=age, secure=secure, httponly=True, samesite="lax")

    def _csrf(self, visit: Visit) -> str:
        token = cookies.session_token(visit.request, secure=visit.service.secure)
        return csrf.csrf_token(token) if token else ""


def local_times(text: str) -> Markup:
    """Mark up the UTC times in a text: the browser shows them in local time, as all times of a page."""
    markup = r'<time datetime="\1T\2+00:00" data-as="full">\1 \2 UTC</time>'
    return Markup(_UTC_TIME.sub(markup, str(escape(text))))  # noqa: S704


def _template_folders() -> list[Path]:
    """Return the template folders of the console, the features and the documents application."""
    root = Path(str(resources.files("duly")))
    features = sorted(root.glob("features/*/templates"))
    return [root / "console" / "templates", *features, root / "apps" / "documents" / "templates"]


def _role(visit: Visit) -> str:
    for scope, role in ((Scope.PLATFORM, "platform"), (Scope.ADMIN, "admin"), (Scope.OPERATE, "operator")):
        if visit.may(scope):
            return f"frame.role.{role}"
    return "frame.role.viewer"


def _plain(value: object) -> object:
    """Return the value as a number or a string, so that it can be stored as JSON."""
    return value if isinstance(value, int | float) else str(value)
