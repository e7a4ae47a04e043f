"""From templates to pages: every value is escaped, every text is in the visitor's language."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from string import Template
from typing import NamedTuple
from urllib.parse import urlencode

from fastapi import Request
from starlette.responses import HTMLResponse

from duly.documents.extraction.asking import JOB_TYPE as EXTRACT
from duly.http import cookies
from duly.http.pages.static_files import static
from duly.http.pages.texts import LANGUAGES, texts
from duly.http.service import Service

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


class Safe(str):
    """HTML that was made here, and is not escaped again."""


class _Page(Template):
    idpattern = r"[a-z][a-z0-9_.]*"


class _Values(Mapping[str, str]):
    """What a template may name: values of this page, and texts."""

    def __init__(self, language: str, values: Mapping[str, object]) -> None:
        self._all: dict[str, object] = {**texts(language), **values}

    def __getitem__(self, name: str) -> str:
        value = self._all[name]
        return value if isinstance(value, Safe) else html.escape(str(value))

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


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
            "nav": self._nav(request, name, language) if token else Safe(),
            "switch": _switch(request, language),
        }

    def _nav(self, request: Request, name: str, language: str) -> Safe:
        here = {f"here_{page}": _here(page, name) for page in ("submit", "jobs", "documents")}
        base = self._service.path(request)
        kept = has_documents(self._service)
        documents = fill("nav_documents.html", language, base=base, **here) if kept else Safe()
        place = self._service.console
        console = fill("nav_console.html", language, base=base, place=place) if place else Safe()
        return fill("nav.html", language, base=base, documents=documents, console=console, **here)


def _here(page: str, name: str) -> Safe:
    """Whether a link of the menu leads to where they are, or to what that is part of."""
    if page == name:
        return Safe('aria-current="page"')
    return Safe('aria-current="true"') if page == _WITHIN.get(name) else Safe()


def _tabs(language: str, base: str, name: str) -> Safe:
    """The pages of documents, where they are one of them."""
    if name not in _DOCUMENTS and name not in _WITHIN:
        return Safe()
    shown = name if name in _DOCUMENTS else _WITHIN[name]
    here = {f"here_{page}": _here(page, name) if page == shown else Safe() for page in _DOCUMENTS}
    return fill("documents_tabs.html", language, base=base, **here)


def has_documents(service: Service) -> bool:
    """Whether the application includes documents; else nothing is said of them."""
    return EXTRACT in service.app.registry


def _switch(request: Request, language: str) -> Safe:
    """The same page in the other languages, as links."""
    links = (fill("switch.html", language, **to._asdict()) for to in switch_to(request, language))
    return Safe("".join(links))


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


def fill(template: str, language: str, **values: object) -> Safe:
    """A template with its values and texts."""
    return Safe(_template(template).substitute(_Values(language, values)))


def as_data(value: object) -> str:
    """For attributes that a module reads: JSON, escaped like everything."""
    return json.dumps(value, ensure_ascii=False)


@cache
def _template(name: str) -> _Page:
    file = resources.files(__package__).joinpath("templates", name)
    return _Page(file.read_text(encoding="utf-8"))
