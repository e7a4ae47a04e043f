"""Where the pages are. Who is not logged in is shown the way, and comes back from there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from duly.apps.documents.pages import (
    document as reading,
)
from duly.apps.documents.pages import (
    folder,
    library,
    transfers,
)
from duly.apps.documents.pages import (
    search as searching,
)
from duly.apps.documents.pages import (
    types as sorting,
)
from duly.core.errors import DulyError, NotFound, Unauthenticated
from duly.core.principal import Scope
from duly.core.states import EventType
from duly.http.problems import status_of
from duly.http.requester import Requester
from duly.http.service import Service
from duly.i18n import messages
from duly.pages import listing
from duly.pages import submit as submitting
from duly.pages.render import Pages, has_documents, language_of, to_json
from duly.pages.sign_in import BACK, HOME, SigningIn
from duly.pages.static_files import served, static

Visit = Callable[[Requester], Awaitable[Response]]
Shows = Callable[[Pages, Request, Service, Requester], Awaitable[Response]]


def routes(service: Service) -> APIRouter:
    """Every page, and what they load."""
    api = APIRouter(include_in_schema=False)
    site = _Site(service)
    for path, page in (
        ("/", site.home),
        ("/login", site.signing_in.login),
        ("/login/start", site.signing_in.start),
        (BACK, site.signing_in.back),
        ("/submit", site.submit),
        ("/jobs", site.jobs),
        ("/jobs/{job_id}", site.job),
        ("/results/{result_id}", site.result),
        ("/static/{version}/{name}", static_file),
    ):
        api.add_api_route(path, page, methods=["GET"])
    if has_documents(service):
        api.add_api_route("/documents", site.documents, methods=["GET"])
        api.add_api_route("/documents/search", site.search, methods=["GET"])
        api.add_api_route("/documents/review", site.review, methods=["GET"])
        api.add_api_route("/documents/filing", site.filing, methods=["GET"])
        api.add_api_route("/documents/connectors", site.connectors, methods=["GET"])
        api.add_api_route("/documents/exports", site.exports, methods=["GET"])
        api.add_api_route("/documents/folders/{node_id}", site.folder, methods=["GET"])
        api.add_api_route("/documents/{document_id}", site.document, methods=["GET"])
    return api


class _Site:
    """The pages of one service."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._pages = Pages(service)
        self.signing_in = SigningIn(service, self._pages)

    async def home(self, request: Request) -> Response:
        return RedirectResponse(self._service.path(request) + HOME, 303)

    async def submit(self, request: Request) -> Response:
        async def visit(who: Requester) -> Response:
            kinds = self._service.app.registry
            return submitting.page(self._pages, request, kinds, may_write=who.may(Scope.WRITE))

        return await self._visited(request, visit)

    async def jobs(self, request: Request) -> Response:
        return await self._shown(request, listing.page)

    async def job(self, request: Request, job_id: str) -> Response:
        async def visit(who: Requester) -> Response:
            found = (await self._service.jobs.status(who.org_id, _id(job_id))).job
            await self._service.check_subject(who, found)
            return self._pages.page(
                request,
                "job",
                job_id=found.job_id,
                job_type=found.job_type,
                names=to_json([event.value for event in EventType]),
                may=to_json({"write": who.may(Scope.WRITE), "operate": who.may(Scope.OPERATE)}),
            )

        return await self._visited(request, visit)

    async def result(self, request: Request, result_id: str) -> Response:
        async def visit(who: Requester) -> Response:
            found = (await self._service.results.get(who.org_id, _id(result_id))).job
            await self._service.check_subject(who, found)
            return self._pages.page(request, "result", result_id=found.result_id, job_type=found.job_type)

        return await self._visited(request, visit)

    async def documents(self, request: Request) -> Response:
        return await self._shown(request, library.page)

    async def search(self, request: Request) -> Response:
        return await self._shown(request, searching.page)

    async def review(self, request: Request) -> Response:
        return await self._shown(request, sorting.review)

    async def filing(self, request: Request) -> Response:
        return await self._shown(request, sorting.filing)

    async def connectors(self, request: Request) -> Response:
        return await self._shown(request, transfers.connectors)

    async def exports(self, request: Request) -> Response:
        return await self._shown(request, transfers.exports)

    async def folder(self, request: Request, node_id: str) -> Response:
        return await self._visited(
            request, lambda who: folder.page(self._pages, request, self._service, who, _id(node_id))
        )

    async def document(self, request: Request, document_id: str) -> Response:
        return await self._visited(
            request, lambda who: reading.page(self._pages, request, self._service, who, _id(document_id))
        )

    async def _shown(self, request: Request, page: Shows) -> Response:
        return await self._visited(request, lambda who: page(self._pages, request, self._service, who))

    async def _visited(self, request: Request, visit: Visit) -> Response:
        """The page for whoever is logged in; what is not theirs looks like what is not there."""
        try:
            who = await self._service.authenticate(request, None)
            if who.may(Scope.PLATFORM) and self._service.console is not None:
                # These pages are for the people of an org: on to the console.
                return RedirectResponse(self._service.path(request) + self._service.console, 303)
            who.principal.require(Scope.READ)
            return await visit(who)
        except Unauthenticated:
            return self._to_log_in(request)
        except NotFound:
            return self._pages.page(request, "missing", status_code=404)
        except DulyError as error:
            return self._refused(request, error)

    def _to_log_in(self, request: Request) -> Response:
        path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
        query = f"?{request.url.query}" if request.url.query else ""
        there = urlencode({"next": path + query})
        return RedirectResponse(f"{self._service.path(request)}/login?{there}", 303)

    def _refused(self, request: Request, error: DulyError) -> Response:
        status = status_of(error)
        if status == 500:
            raise error
        known = messages(language_of(request))
        why = known.text(f"refused.{status}" if f"refused.{status}" in known else "refused.other")
        return self._pages.page(request, "refused", status_code=status, why=why, detail=error.message)


async def static_file(version: str, name: str) -> Response:
    """A file that a page loads. A page of another version still gets it, but nobody keeps it."""
    return served(static().files, name, kept=version == static().version)


def _id(text: str) -> UUID:
    """An id from a path; what is none is not found."""
    try:
        return UUID(text)
    except ValueError:
        raise NotFound("no such id") from None
