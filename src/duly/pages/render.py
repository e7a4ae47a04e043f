"""Rendering of the customer pages: templates in the language of the visitor."""

from __future__ import annotations

import json
from typing import NamedTuple
from urllib.parse import urlencode

from fastapi import Request
from jinja2 import ChoiceLoader, PackageLoader
from starlette.responses import HTMLResponse

from duly.apps.documents.extraction.service import JOB_TYPE as EXTRACT
from duly.http.authentication import cookies, csrf
from duly.http.service import Service
from duly.http.templating import environment
from duly.i18n import LANGUAGES, messages
from duly.pages.static_files import static

LANGUAGE_COOKIE = "duly_lang"
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
_ONE_YEAR = 365 * 24 * 3600
_DOCUMENT_PAGES = frozenset(
    {"documents", "document", "folder", "search", "review", "connectors", "exports", "filing"}
)


def to_json(value: object) -> str:
    """Return JSON for an attribute that a script reads; it is escaped like every value."""
    return json.dumps(value, ensure_ascii=False, default=str)


_ENVIRONMENT = environment(ChoiceLoader([PackageLoader("duly.pages"), PackageLoader("duly.apps.documents")]))
_ENVIRONMENT.filters["tojson_text"] = to_json


class Pages:
    """Renders the customer pages of a service."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def page(
        self,
        request: Request,
        name: str,
        *,
        status_code: int = 200,
        title: str | None = None,
        **values: object,
    ) -> HTMLResponse:
        """Render the template of that name; the title is that of the page unless it is given."""
        language = language_of(request)
        text = messages(language).text
        token = cookies.session_token(request, secure=self._service.secure)
        base = self._service.path(request)
        context = {
            "t": text,
            "lang": language,
            "title": text(f"{name}.title") if title is None else title,
            "page": name,
            "section": "documents" if name in _DOCUMENT_PAGES else None,
            "base": base,
            "csrf": csrf.csrf_token(token) if token else "",
            "static": base + static().path,
            "script": f"{name}.js" if f"{name}.js" in static().files else "page.js",
            "has_documents": has_documents(self._service),
            "console": self._service.console,
            "languages": other_languages(request, language),
        }
        html = _ENVIRONMENT.get_template(f"{name}.html").render({**context, **values})
        response = HTMLResponse(html, status_code, HEADERS)
        if request.query_params.get("lang") in LANGUAGES:
            secure = self._service.secure or request.url.scheme == "https"
            response.set_cookie(
                LANGUAGE_COOKIE, language, max_age=_ONE_YEAR, secure=secure, httponly=True, samesite="lax"
            )
        return response


def has_documents(service: Service) -> bool:
    """Return whether the application includes documents."""
    return EXTRACT in service.app.registry


class LanguageLink(NamedTuple):
    """A link to the same page in another language."""

    query: str
    language: str
    name: str
    """What the language is called in itself."""


def other_languages(request: Request, language: str) -> list[LanguageLink]:
    """Return links to the same page in the other languages."""
    return [
        LanguageLink(
            urlencode({**request.query_params, "lang": other}), other, messages(other).text("language")
        )
        for other in LANGUAGES
        if other != language
    ]


def language_of(request: Request) -> str:
    """Return the language of the address or the cookie, else the one that the browser prefers."""
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
