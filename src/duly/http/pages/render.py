"""From templates to pages: every value is escaped, every text is in the visitor's language."""

from __future__ import annotations

import json
from typing import NamedTuple
from urllib.parse import urlencode

from fastapi import Request
from jinja2 import PackageLoader
from markupsafe import Markup
from starlette.responses import HTMLResponse

from duly.documents.extraction.asking import JOB_TYPE as EXTRACT
from duly.http import cookies
from duly.http.pages.static_files import static
from duly.http.pages.texts import LANGUAGES, texts
from duly.http.service import Service
from duly.http.templating import environment

_TEMPLATES = environment(PackageLoader("duly.http.pages"))
LANGUAGE_COOKIE = "duly_lang"
_DOCUMENTS = ("documents", "search", "review", "connectors", "exports", "filing")
_WITHIN = dict.fromkeys((*_DOCUMENTS[1:], "document", "folder"), "documents")
_A_YEAR = 365 * 24 * 3600
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
    "vary": "accept-language, cookie",
}


class Pages:
    """Renders pages for visitors of a service."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def page(self, request: Request, name: str, *, status: int = 200, **values: object) -> HTMLResponse:
        """The page of that name as an answer."""
        language = language_of(request)
        base = self._service.path(request)
        inner = {"base": base, "lang": language, "tabs": _tabs(language, base, name), **values}
        body = fill(f"{name}.html", language, **inner)
        around = self._around(request, name, language)
        answer = HTMLResponse(
            fill("layout.html", language, **{**around, **inner, "body": body}), status, HEADERS
        )
        if request.query_params.get("lang") in LANGUAGES:
            secure = self._service.secure or request.url.scheme == "https"
            answer.set_cookie(
                LANGUAGE_COOKIE, language, max_age=_A_YEAR, secure=secure, httponly=True, samesite="lax"
            )
        return answer

    def _around(self, request: Request, name: str, language: str) -> dict[str, object]:
        token = cookies.token_in(request, secure=self._service.secure)
        said = texts(language)
        return {
            "title": said[f"{name}.title"],
            "csrf": cookies.csrf(token) if token else "",
            "static": self._service.path(request) + static().place,
            "script": f"{name}.js" if f"{name}.js" in static().files else "page.js",
            "nav": self._nav(request, name, language) if token else Markup(),
            "switch": _switch(request, language),
        }

    def _nav(self, request: Request, name: str, language: str) -> Markup:
        here = {f"here_{page}": _here(page, name) for page in ("submit", "jobs", "documents")}
        base = self._service.path(request)
        kept = has_documents(self._service)
        documents = fill("nav_documents.html", language, base=base, **here) if kept else Markup()
        place = self._service.console
        console = fill("nav_console.html", language, base=base, place=place) if place else Markup()
        return fill("nav.html", language, base=base, documents=documents, console=console, **here)


def _here(page: str, name: str) -> Markup:
    """Whether a link of the menu leads to where they are, or to what that is part of."""
    if page == name:
        return Markup('aria-current="page"')
    return Markup('aria-current="true"') if page == _WITHIN.get(name) else Markup()


def _tabs(language: str, base: str, name: str) -> Markup:
    """The pages of documents, where they are one of them."""
    if name not in _DOCUMENTS and name not in _WITHIN:
        return Markup()
    shown = name if name in _DOCUMENTS else _WITHIN[name]
    here = {f"here_{page}": _here(page, name) if page == shown else Markup() for page in _DOCUMENTS}
    return fill("documents_tabs.html", language, base=base, **here)


def has_documents(service: Service) -> bool:
    """Whether the application includes documents; else nothing is said of them."""
    return EXTRACT in service.app.registry


def _switch(request: Request, language: str) -> Markup:
    """The same page in the other languages, as links."""
    links = (fill("switch.html", language, **to._asdict()) for to in switch_to(request, language))
    return Markup().join(links)


class Switch(NamedTuple):
    """The same page in another language."""

    query: str
    other: str
    own: str
    """What the language calls itself."""


def switch_to(request: Request, language: str) -> list[Switch]:
    """The same page in the other languages."""
    return [
        Switch(urlencode({**request.query_params, "lang": other}), other, texts(other)["language"])
        for other in LANGUAGES
        if other != language
    ]


def language_of(request: Request) -> str:
    """What they chose, here or before; else what the browser prefers."""
    for chosen in (request.query_params.get("lang"), request.cookies.get(LANGUAGE_COOKIE)):
        if chosen in LANGUAGES:
            return chosen
    accepted = [part.partition(";") for part in request.headers.get("accept-language", "").split(",")]
    ranked = sorted(accepted, key=lambda part: -_quality(part[2]))
    known = (language.strip().lower()[:2] for language, _, _ in ranked)
    return next((language for language in known if language in LANGUAGES), LANGUAGES[0])


def _quality(parameters: str) -> float:
    try:
        return float(parameters.strip().removeprefix("q=") or 1)
    except ValueError:
        return 0.0


def fill(template: str, language: str, **values: object) -> Markup:
    """A template with its values; `t` is a text by its key."""
    said = texts(language)
    return Markup(_TEMPLATES.get_template(template).render(t=said.__getitem__, **values))  # noqa: S704


def as_data(value: object) -> str:
    """For attributes that a module reads: JSON, escaped like everything."""
    return json.dumps(value, ensure_ascii=False)
