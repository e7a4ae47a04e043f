"""The pages that import documents from connectors, and export them."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response

from duly.apps.documents.exports.service import DOCUMENTS, SEARCH
from duly.apps.documents.folders.job_subjects import private_subject
from duly.apps.documents.http.models import visitor
from duly.apps.documents.pages.choices import type_choices, type_param
from duly.core.principal import Scope
from duly.http.requester import Requester
from duly.http.service import Service
from duly.pages.render import Pages

_PROVIDERS = {"dropbox": "Dropbox", "onedrive": "OneDrive", "gdrive": "Google Drive"}
_RECENT_EXPORTS = 10


async def connectors(pages: Pages, request: Request, service: Service, requester: Requester) -> Response:
    """Show the connectors; admins create and remove them, members with the scope write start imports."""
    reader = visitor(requester)
    folders = await service.documents.folders.list(reader)
    return pages.page(
        request,
        "connectors",
        connectors=await service.documents.connectors.list(reader),
        folders=folders,
        paths={folder.node_id: folder.path for folder in folders},
        providers=_PROVIDERS,
        may_write=requester.may(Scope.WRITE),
        may_admin=requester.may(Scope.ADMIN),
    )


async def exports(pages: Pages, request: Request, service: Service, requester: Requester) -> Response:
    """Show the form, filled in with the filter of the page before, and the requester's recent exports."""
    reader, param = visitor(requester), request.query_params.get
    folders = await service.documents.folders.list(reader)
    doc_type = type_param(param("doc_type"))
    jobs = [
        job
        for job_type in (DOCUMENTS, SEARCH)
        for job in (
            await service.jobs.list(
                requester.org_id, job_type=job_type, subject_id=private_subject(reader), limit=_RECENT_EXPORTS
            )
        ).jobs
    ]
    return pages.page(
        request,
        "exports",
        query=param("q") or "",
        folders=folders,
        folder_id=next((one.node_id for one in folders if str(one.node_id) == param("folder")), None),
        doc_type=doc_type,
        jobs=sorted(jobs, key=lambda job: job.created_at, reverse=True)[:_RECENT_EXPORTS],
        may_write=requester.may(Scope.WRITE),
        **type_choices(request, doc_type),
    )
