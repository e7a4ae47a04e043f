"""A crawler of the console: follows every link, and collects every form."""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import httpx
import pytest
from fastapi import FastAPI

from duly.console.feature_pages import PAGES
from duly.console.form import Form
from duly.console.routing import Act, Show
from duly.console.visit import PREFIX, Visit
from tests.http.foreign_org import PARAMETER

_ALIKE = 2
"""Pages of one shape that are opened."""
_LEFT_ALONE = re.compile(r"[?&](lang|theme)=|/static/|/sign-out")


@dataclass(frozen=True)
class Sent:
    """A form as it is on a page, with something typed into its fields."""

    action: str
    fields: tuple[tuple[str, str], ...]


@dataclass
class Found:
    """The links and forms that a crawl found."""

    links: list[str] = field(default_factory=list)
    forms: set[Sent] = field(default_factory=set)


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.forms: list[tuple[str, list[tuple[str, str]]]] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attributes}
        if tag == "a" and "href" in said:
            self.links.append(said["href"])
        elif tag == "form":
            target = said.get("action", "")
            self.forms.append((target if said.get("method") == "post" else "", []))
        elif tag in ("input", "select", "textarea") and self.forms and said.get("name", "csrf") != "csrf":
            typed = said.get("value") or ("1" if said.get("type") == "number" else "x")
            self.forms[-1][1].append((said["name"], typed))


async def stroll(person: httpx.AsyncClient, start: str = PREFIX) -> Found:
    """Every page that links lead to, a few of each shape; and the forms on them."""
    found, left, seen = Found(), deque([start]), Counter[object]()
    known = {start}
    while left:
        link = left.popleft()
        if seen[_shape(link)] >= _ALIKE:
            continue
        seen[_shape(link)] += 1
        answer = await person.get(link)
        if answer.status_code != 200 or "text/html" not in answer.headers["content-type"]:
            continue
        found.links.append(link)
        page = _Page()
        page.feed(answer.text)
        found.forms |= {Sent(action, tuple(fields)) for action, fields in page.forms if action}
        for href in page.links:
            there = str(httpx.URL(link).join(href)) if href.startswith("?") else href
            if there.startswith(PREFIX) and there not in known and not _LEFT_ALONE.search(there):
                known.add(there)
                left.append(there)
    found.forms = {one for one in found.forms if not _LEFT_ALONE.search(one.action)}
    return found


def _shape(link: str) -> object:
    parts = urlsplit(link)
    names = frozenset(name for name, _ in parse_qsl(parts.query))
    return re.sub(r"/[^/]*[0-9a-f]{8}[^/]*", "/{}", parts.path), names


class Names:
    """The names of queries and forms that pages have asked for, whoever wrote them."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._asked: defaultdict[str, set[str]] = defaultdict(set)
        self.filled: set[str] = set()
        query, by_route, filled = Visit.query.fget, self._asked, self.filled

        class Noting(dict[str, str]):
            def __init__(self, visit: Visit) -> None:
                super().__init__(query(visit))
                self._names = by_route[visit.request.scope["route"].path]

            def get(self, name: str, otherwise: Any = None) -> Any:
                self._names.add(name)
                return super().get(name, otherwise)

            def __getitem__(self, name: str) -> str:
                self._names.add(name)
                return super().__getitem__(name)

            def __contains__(self, name: object) -> bool:
                self._names.add(str(name))
                return super().__contains__(name)

        def noted(method: Any) -> Any:
            def noting(self: Form, name: str, *more: Any) -> Any:
                filled.add(name)
                return method(self, name, *more)

            return noting

        patch.setattr(Visit, "query", property(Noting))
        for name in ("__getitem__", "all", "text", "number", "id"):
            patch.setattr(Form, name, noted(getattr(Form, name)))

    @property
    def asked(self) -> set[str]:
        """Of all queries."""
        return {name for names in self._asked.values() for name in names}

    def asked_by(self, route: Show | Act) -> set[str]:
        """Of the queries of one page."""
        return self._asked[_path(route)]

    def query(self, value: str) -> str:
        """An address that says the same for everything that can be asked."""
        return "?" + urlencode(dict.fromkeys(sorted(self.asked - {"lang", "theme"}), value))


def declared(api: FastAPI) -> list[Show | Act]:
    """Every page and change of the console; the service has no others."""
    known = api.state.service.app.registry
    found = [one for page in PAGES for one in page.ROUTES if one.needs is None or one.needs in known]
    served = {(method, one.path) for one in api.router.routes for method in getattr(one, "methods", ())}
    ours = {("GET" if isinstance(one, Show) else "POST", _path(one)) for one in found}
    more = {("GET", f"{PREFIX}/static/{{version}}/{{name}}"), ("GET", f"{PREFIX}/{{path:path}}")}
    assert {one for one in served if one[1].startswith(PREFIX)} == ours | more | {("GET", f"{PREFIX}/")}
    return found


def _path(route: Show | Act) -> str:
    return PREFIX + ("" if route.path == "/" else route.path)


def route_of(place: str) -> str:
    """The page that an address leads to, as it was declared."""
    path = urlsplit(place).path.removeprefix(PREFIX) or "/"
    shown = [one.path for page in PAGES for one in page.ROUTES if isinstance(one, Show)]
    return next((one for one in shown if re.fullmatch(PARAMETER.sub("[^/]+", one), path)), path)


def filled(route: Show | Act, ids: dict[str, list[str]]) -> Iterator[str]:
    """Its addresses with these ids; a name that nobody knows is tried with all of them."""
    path = _path(route)
    names = PARAMETER.findall(path)
    if not names:
        yield path
        return
    every = sorted({one for some in ids.values() for one in some})
    many = [ids.get(name, every) for name in names]
    for turn in range(max(map(len, many))):
        chosen = {name: some[turn % len(some)] for name, some in zip(names, many, strict=True)}
        yield "/".join(_part(part, chosen) for part in path.split("/"))


def _part(part: str, chosen: dict[str, str]) -> str:
    name = PARAMETER.fullmatch(part)
    return quote(chosen[name[1]], safe="") if name else part
