"""The HTTP routes of the console: sign-in, choice of the org, pages and changes."""

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
from duly.console.live import RenderCache, page_events
from duly.console.menu import Menu
from duly.console.render import Renderer
from duly.console.routing import Act, Show
from duly.console.visit import PREFIX, ConsolePage, Visit, as_id
from duly.core.errors import DulyError, NotFound, Unauthenticated
from duly.core.job import Actor
from duly.core.principal import Scope
from duly.http import sse
from duly.http.problems import status_of
from duly.http.requester import Requester
from duly.http.service import Service
from duly.jobs.request_context import RequestContext, current_context, enter_context
from duly.pages.render import language_of

ORG_NAME_TTL = 60.0
MAX_CACHED_ORG_NAMES = 10_000

Handler = Callable[[Request], Awaitable[Response]]


def install(api: FastAPI, extras: Extras | None = None) -> None:
    """Add the console to a service of `duly.http`."""
    service: Service = api.state.service
    service.console = PREFIX
    api.router.routes.extend(_ConsoleSite(service, extras or Extras()).routes().routes)


class _ConsoleSite:
    """The console of one service."""

    def __init__(self, service: Service, extras: Extras) -> None:
        self._service = service
        declared = [route for module in PAGES for route in module.ROUTES]
        registry = service.app.registry
        self._routes: list[Show | Act] = [
            route for route in (*declared, *extras.routes) if route.needs is None or route.needs in registry
        ]
        menu = Menu([route for route in self._routes if isinstance(route, Show)])
        self._renderer = Renderer(extras, menu)
        self._cache = RenderCache()
        self._org_names: dict[UUID, tuple[float, str]] = {}

    def routes(self) -> APIRouter:
        """Return the routes of pages, changes and static files."""
        api = APIRouter(prefix=PREFIX, include_in_schema=False)
        api.add_api_route("/static/{version}/{name}", self._static, methods=["GET"])
        for route in self._routes:
            paths = ("", "/") if route.path == "/" else (route.path,)
            for path in paths:
                if isinstance(route, Show):
                    api.add_api_route(path, self._show_handler(route), methods=["GET"])
                else:
                    api.add_api_route(path, self._act_handler(route), methods=["POST"])
        api.add_api_route("/{path:path}", self._show_handler(Show("/", _not_found)), methods=["GET"])
        return api

    async def _static(self, version: str, name: str) -> Response:
        return self._renderer.assets.response(version, name)

    def _show_handler(self, show: Show) -> Handler:
        async def handle(request: Request) -> Response:
            async def respond(visit: Visit) -> Response:
                visit.requester.principal.require(show.scope)
                if sse.MEDIA_TYPE in request.headers.get("accept", ""):
                    return await sse.stream_response(page_events(self._cache, visit, show))
                return await self._renderer.response(visit, await show.page(visit))

            return await self._respond(request, respond)

        return handle

    def _act_handler(self, act: Act) -> Handler:
        async def handle(request: Request) -> Response:
            form = await read_form(request)

            async def respond(visit: Visit) -> Response:
                if act.scope is not None:
                    visit.requester.principal.require(act.scope)
                try:
                    return await act.act(visit, form)
                except (NotFound, Unauthenticated):
                    raise
                except DulyError as error:
                    if act.page is None or status_of(error) in (403, 500, 503):
                        raise
                    rejected = replace(visit, form=form, problem=error)
                    page = replace(await act.page(rejected), status=status_of(error))
                    return await self._renderer.response(rejected, page)

            return await self._respond(request, respond)

        return handle

    async def _respond(self, request: Request, respond: Callable[[Visit], Awaitable[Response]]) -> Response:
        """Respond to a signed-in principal; resources of other orgs are as unknown as missing ones."""
        try:
            visit = await self._authenticate(request)
        except Unauthenticated:
            return self._redirect_to_sign_in(request)
        try:
            return await respond(await self._choose_org(visit))
        except Unauthenticated:
            return self._redirect_to_sign_in(request)
        except NotFound:
            return await self._error_page(visit, "missing.html", 404, visit.t("missing.title"))
        except DulyError as error:
            status = status_of(error)
            if status == 500:
                raise
            title = visit.t("refused.title")
            return await self._error_page(visit, "refused.html", status, title, error=error)

    async def _error_page(
        self, visit: Visit, template: str, status: int, title: str, **values: Any
    ) -> Response:
        page = ConsolePage(template, title, {"status": status, **values}, status)
        return await self._renderer.response(visit, page)

    async def _authenticate(self, request: Request) -> Visit:
        """Return a visit in the principal's own org."""
        requester = await self._service.authenticate(request, None)
        if requester.may(Scope.PLATFORM):
            requester = _as_operator(requester, requester.org_id)
        return Visit(
            service=self._service,
            request=request,
            requester=requester,
            renderer=self._renderer,
            language=language_of(request),
            org_id=requester.org_id,
            org_name=await self._org_name(requester.org_id),
            all_orgs=requester.may(Scope.PLATFORM),
        )

    async def _choose_org(self, visit: Visit) -> Visit:
        """Return the visit in the org of the query; only operators of the installation can choose one."""
        chosen = visit.query.get("org")
        if not chosen or not visit.platform:
            return visit
        org_id = as_id(chosen)
        name = await self._org_name(org_id)
        requester = _as_operator(visit.requester, org_id)
        return replace(visit, requester=requester, org_id=org_id, org_name=name, all_orgs=False)

    async def _org_name(self, org_id: UUID) -> str:
        """Return the name of an org from the cache, or read it."""
        read_at, name = self._org_names.get(org_id, (0.0, ""))
        if not name or time.monotonic() > read_at + ORG_NAME_TTL:
            name = (await self._service.orgs.get(org_id)).name
            while len(self._org_names) >= MAX_CACHED_ORG_NAMES:
                self._org_names.pop(next(iter(self._org_names)))
            self._org_names[org_id] = (time.monotonic(), name)
        return name

    def _redirect_to_sign_in(self, request: Request) -> Response:
        path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
        if request.method != "GET":
            path = PREFIX
        query = f"?{request.url.query}" if request.url.query and request.method == "GET" else ""
        params = urlencode({"next": path + query})
        return RedirectResponse(f"{self._service.path(request)}/login?{params}", 303)


def _as_operator(requester: Requester, org_id: UUID) -> Requester:
    """Return an operator of the installation in one of its orgs: with every scope, under the own name."""
    actor, outer = Actor.operator(requester.actor.id), current_context()
    enter_context(lambda: RequestContext(org_id=org_id, actor=actor).completed_by(outer))
    principal = replace(requester.principal, org_id=org_id, actor=actor, scopes=frozenset(Scope))
    return replace(requester, principal=principal)


async def _not_found(visit: Visit) -> ConsolePage:
    raise NotFound("page not found")
