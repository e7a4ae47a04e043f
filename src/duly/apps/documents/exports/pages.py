"""The page of exports."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response

from duly.apps.documents.exports.service import EXPORT_DOCUMENTS, EXPORT_SEARCH
from duly.apps.documents.folders.job_subjects import private_subject
from duly.apps.documents.page_choices import type_choices, type_param
from duly.apps.documents.request_models import document_principal
from duly.core.principal import Scope
from duly.http.requester import Requester
from duly.http.service import Service
from duly.pages.render import Pages

_RECENT_EXPORTS = 10


async def page(pages: Pages, request: Request, service: Service, requester: Requester) -> Response:
    """Show the form, filled in with the filter of the page before, and the requester's recent exports."""
    principal, param = document_principal(requester), request.query_params.get
    folders = await service.documents.folders.list(principal)
    doc_type = type_param(param("doc_type"))
    jobs = [
        job
        for job_type in (EXPORT_DOCUMENTS, EXPORT_SEARCH)
        for job in (
            await service.jobs.list(
                requester.org_id,
                job_type=job_type,
                subject_id=private_subject(principal),
                limit=_RECENT_EXPORTS,
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
