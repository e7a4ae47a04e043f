"""The routes of the customer pages. A request without a session goes to the sign-in page, and then back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from duly.apps.documents.classification import pages as classification
from duly.apps.documents.exports import pages as exports
from duly.apps.documents.folders import pages as folders
from duly.apps.documents.imports import pages as imports
from duly.apps.documents.library import pages as library
from duly.apps.documents.search import pages as search
from duly.core.errors import DulyError, NotFound, Unauthenticated
from duly.core.principal import Scope
from duly.core.states import EventType
from duly.http.problems import status_of
from duly.http.requester import Requester
from duly.http.service import Service
from duly.i18n import messages
from duly.pages import listing, submit
from duly.pages.render import Pages, has_documents, language_of, to_json
from duly.pages.sign_in import CALLBACK, HOME, SignInPages
from duly.pages.static_files import static

PageFunction = Callable[[Pages, Request, Service, Requester], Awaitable[Response]]


def routes(service: Service) -> APIRouter:
    """Return the routes of all pages and of their static files."""
    api = APIRouter(include_in_schema=False)
    site = _CustomerSite(service)
    sign_in = SignInPages(service, site.pages)
    handlers: dict[str, Callable[..., Awaitable[Response]]] = {
        "/": site.home,
        "/login": sign_in.login,
        "/login/start": sign_in.start,
        CALLBACK: sign_in.callback,
        "/static/{version}/{name}": static_file,
    }
    pages = {**_PAGES, **_DOCUMENT_PAGES} if has_documents(service) else _PAGES
    handlers |= {path: site.handler(page) for path, page in pages.items()}
    for path, handler in handlers.items():
        api.add_api_route(path, handler, methods=["GET"])
    return api


class _CustomerSite:
    """The pages of one service."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.pages = Pages(service)

    async def home(self, request: Request) -> Response:
        return RedirectResponse(self._service.path(request) + HOME, 303)

    def handler(self, page: PageFunction) -> Callable[[Request], Awaitable[Response]]:
        """Return the handler of a page; resources of other orgs are as unknown as missing ones."""

        async def handle(request: Request) -> Response:
            try:
                requester = await self._service.authenticate(request, None)
                if requester.may(Scope.PLATFORM) and self._service.console is not None:
                    # These pages are for members of an org: operators of the installation use the console.
                    return RedirectResponse(self._service.path(request) + self._service.console, 303)
                requester.principal.require(Scope.READ)
                return await page(self.pages, request, self._service, requester)
            except Unauthenticated:
                return self._redirect_to_sign_in(request)
            except NotFound:
                return self.pages.page(request, "missing", status_code=404)
            except DulyError as error:
                return self._refused(request, error)

        return handle

    def _redirect_to_sign_in(self, request: Request) -> Response:
        path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
        query = f"?{request.url.query}" if request.url.query else ""
        params = urlencode({"next": path + query})
        return RedirectResponse(f"{self._service.path(request)}/login?{params}", 303)

    def _refused(self, request: Request, error: DulyError) -> Response:
        status = status_of(error)
        if status == 500:
            raise error
        known = messages(language_of(request))
        message = known.text(f"refused.{status}" if f"refused.{status}" in known else "refused.other")
        return self.pages.page(request, "refused", status_code=status, message=message, detail=error.message)


async def static_file(version: str, name: str) -> Response:
    """Return a file that a page loads. A page of another version gets it too, but must not cache it."""
    return static().response(version, name)


async def _job(pages: Pages, request: Request, service: Service, requester: Requester) -> Response:
    job = (await service.jobs.status(requester.org_id, _path_id(request, "job_id"))).job
    await service.check_subject(requester, job)
    return pages.page(
        request,
        "job",
        job_id=job.job_id,
        job_type=job.job_type,
        names=to_json([event.value for event in EventType]),
        may=to_json({"write": requester.may(Scope.WRITE), "operate": requester.may(Scope.OPERATE)}),
    )


async def _result(pages: Pages, request: Request, service: Service, requester: Requester) -> Response:
    job = (await service.results.get(requester.org_id, _path_id(request, "result_id"))).job
    await service.check_subject(requester, job)
    return pages.page(request, "result", result_id=job.result_id, job_type=job.job_type)


async def _folder(pages: Pages, request: Request, service: Service, requester: Requester) -> Response:
    return await folders.page(pages, request, service, requester, _path_id(request, "node_id"))


async def _document(pages: Pages, request: Request, service: Service, requester: Requester) -> Response:
    return await library.document(pages, request, service, requester, _path_id(request, "document_id"))


def _path_id(request: Request, name: str) -> UUID:
    """Parse an id of the path; an invalid one is not found."""
    try:
        return UUID(request.path_params[name])
    except ValueError:
        raise NotFound("page not found") from None


_PAGES: dict[str, PageFunction] = {
    "/submit": submit.page,
    "/jobs": listing.page,
    "/jobs/{job_id}": _job,
    "/results/{result_id}": _result,
}
_DOCUMENT_PAGES: dict[str, PageFunction] = {
    "/documents": library.documents,
    "/documents/search": search.page,
    "/documents/review": classification.review,
    "/documents/filing": classification.filing,
    "/documents/connectors": imports.page,
    "/documents/exports": exports.page,
    "/documents/folders/{node_id}": _folder,
    "/documents/{document_id}": _document,
}
