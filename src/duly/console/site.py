"""Where the pages of the console are, and who is let in."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter, FastAPI, Request
from starlette.responses import RedirectResponse, Response

from duly.console.extras import Extras
from duly.console.feature_pages import PAGES
from duly.console.form import read_form
from duly.console.live import Boards, told
from duly.console.menu import Menu
from duly.console.render import Renderer
from duly.console.routing import Act, Show
from duly.console.visit import PREFIX, Page, Visit, as_id
from duly.core.errors import DulyError, NotFound, Unauthenticated
from duly.core.job import Actor
from duly.core.principal import Scope
from duly.http import sse as streams
from duly.http.problems import status_of
from duly.http.requester import Requester
from duly.http.service import Service
from duly.jobs.request_context import RequestContext, current_context, enter_context
from duly.pages.render import language_of
from duly.pages.static_files import served

_NAMED_FOR = 60.0
_MOST_NAMES = 10_000


def install(api: FastAPI, extras: Extras | None = None) -> None:
    """Add the console to a service that `duly.http` has made."""
    service: Service = api.state.service
    service.console = PREFIX
    api.router.routes.extend(_Site(service, extras or Extras()).routes().routes)


class _Site:
    """The console of one service."""

    def __init__(self, service: Service, extras: Extras) -> None:
        self._service = service
        declared = [route for module in PAGES for route in module.ROUTES]
        known = service.app.registry
        self._routes: list[Show | Act] = [
            route for route in (*declared, *extras.routes) if route.needs is None or route.needs in known
        ]
        menu = Menu([route for route in self._routes if isinstance(route, Show)])
        self._renderer = Renderer(extras, menu)
        self._boards = Boards()
        self._names: dict[UUID, tuple[float, str]] = {}

    def routes(self) -> APIRouter:
        """Every page and change, and what pages load."""
        api = APIRouter(prefix=PREFIX, include_in_schema=False)
        api.add_api_route("/static/{version}/{name}", self._static, methods=["GET"])
        for route in self._routes:
            paths = ("", "/") if route.path == "/" else (route.path,)
            for path in paths:
                if isinstance(route, Show):
                    api.add_api_route(path, self._shown(route), methods=["GET"])
                else:
                    api.add_api_route(path, self._done(route), methods=["POST"])
        api.add_api_route("/{path:path}", self._shown(Show("/", _nowhere)), methods=["GET"])
        return api

    async def _static(self, version: str, name: str) -> Response:
        assets = self._renderer.assets
        return served(assets.files, name, kept=version == assets.version)

    def _shown(self, show: Show) -> Callable[[Request], Awaitable[Response]]:
        async def shown(request: Request) -> Response:
            async def answer(visit: Visit) -> Response:
                self._check(visit, show.scope)
                if streams.MEDIA_TYPE in request.headers.get("accept", ""):
                    return await streams.stream_response(told(self._boards, visit, show))
                return await self._renderer.whole(visit, await show.page(visit))

            return await self._visited(request, answer)

        return shown

    def _done(self, act: Act) -> Callable[[Request], Awaitable[Response]]:
        async def done(request: Request) -> Response:
            form = await read_form(request)

            async def answer(visit: Visit) -> Response:
                self._check(visit, act.scope)
                try:
                    return await act.act(visit, form)
                except (NotFound, Unauthenticated):
                    raise
                except DulyError as error:
                    if act.page is None or status_of(error) in (403, 500, 503):
                        raise
                    again = replace(visit, form=form, problem=error)
                    page = replace(await act.page(again), status=status_of(error))
                    return await self._renderer.whole(again, page)

            return await self._visited(request, answer)

        return done

    def _check(self, visit: Visit, scope: Scope | None) -> None:
        if scope is not None:
            visit.caller.principal.require(scope)

    async def _visited(self, request: Request, answer: Callable[[Visit], Awaitable[Response]]) -> Response:
        """The answer for whoever is logged in; what is not theirs looks like what is not there."""
        try:
            visit = await self._arrived(request)
        except Unauthenticated:
            return self._to_log_in(request)
        try:
            visit = await self._moved(visit)
            return await answer(visit)
        except Unauthenticated:
            return self._to_log_in(request)
        except NotFound:
            return await self._refused(visit, "missing.html", 404, visit.t("missing.title"))
        except DulyError as error:
            status = status_of(error)
            if status == 500:
                raise
            return await self._refused(visit, "refused.html", status, visit.t("refused.title"), error=error)

    async def _refused(self, visit: Visit, template: str, status: int, title: str, **values: Any) -> Response:
        return await self._renderer.whole(visit, Page(template, title, {"status": status, **values}, status))

    async def _arrived(self, request: Request) -> Visit:
        """Somebody who is logged in, at home."""
        caller = await self._service.authenticate(request, None)
        if caller.may(Scope.PLATFORM):
            caller = _operating(caller, caller.org_id)
        return Visit(
            service=self._service,
            request=request,
            caller=caller,
            renderer=self._renderer,
            language=language_of(request),
            org_id=caller.org_id,
            org_name=await self._name(caller.org_id),
            everywhere=caller.may(Scope.PLATFORM),
        )

    async def _moved(self, visit: Visit) -> Visit:
        """In the org that they have chosen, if they operate the installation; nobody else can choose."""
        chosen = visit.query.get("org")
        if not chosen or not visit.platform:
            return visit
        org_id = as_id(chosen)
        name = await self._name(org_id)
        caller = _operating(visit.caller, org_id)
        return replace(visit, caller=caller, org_id=org_id, org_name=name, everywhere=False)

    async def _name(self, org_id: UUID) -> str:
        """What an org is called; asked now and then."""
        at, name = self._names.get(org_id, (0.0, ""))
        if not name or time.monotonic() > at + _NAMED_FOR:
            name = (await self._service.orgs.get(org_id)).name
            while len(self._names) >= _MOST_NAMES:
                self._names.pop(next(iter(self._names)))
            self._names[org_id] = (time.monotonic(), name)
        return name

    def _to_log_in(self, request: Request) -> Response:
        path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
        if request.method != "GET":
            path = PREFIX
        query = f"?{request.url.query}" if request.url.query and request.method == "GET" else ""
        there = urlencode({"next": path + query})
        return RedirectResponse(f"{self._service.path(request)}/login?{there}", 303)


def _operating(caller: Requester, org_id: UUID) -> Requester:
    """Whoever operates the installation, in one of its orgs: they may do everything, under their own name."""
    actor, outer = Actor.operator(caller.actor.id), current_context()
    enter_context(lambda: RequestContext(org_id=org_id, actor=actor).completed_by(outer))
    who = replace(caller.principal, org_id=org_id, actor=actor, scopes=frozenset(Scope))
    return replace(caller, principal=who)


async def _nowhere(visit: Visit) -> Page:
    raise NotFound("no such page")
