"""The route that exports documents or search results; only the requester sees the job and its files."""

from typing import Annotated, Self
from uuid import UUID

from fastapi import APIRouter
from pydantic import Field, model_validator
from starlette.responses import Response

from duly.apps.documents.exports.models import ExportFormat
from duly.apps.documents.exports.service import MAX_DOCUMENT_IDS
from duly.apps.documents.folders.job_subjects import private_subject
from duly.apps.documents.request_models import DocType, document_principal
from duly.apps.documents.search.models import Filters
from duly.apps.documents.search.query import MAX_QUERY_LENGTH
from duly.core.principal import Scope
from duly.features.jobs.models import Accepted
from duly.features.jobs.responses import accepted
from duly.http.params import StrictModel, Timestamp
from duly.http.problems import problem_responses
from duly.http.requester import Requester
from duly.http.service import Service
from duly.http.strict_requests import StrictRoute


class ExportFilters(Filters):
    """The filters of a search."""

    created_from: Timestamp | None = None
    created_to: Timestamp | None = None


class ExportRequest(StrictModel):
    """An export of search results (`query`, `filters`) or of documents; without a selection, of all."""

    format: ExportFormat = "csv"
    bom: bool = Field(
        default=False, strict=True, description="Start a CSV file with the mark by which Excel detects UTF-8."
    )
    query: Annotated[str, Field(min_length=1, max_length=MAX_QUERY_LENGTH)] | None = Field(
        default=None, description="The search query; best passages first."
    )
    filters: ExportFilters | None = Field(default=None, description="The filters of the search.")
    document_ids: Annotated[list[UUID], Field(min_length=1, max_length=MAX_DOCUMENT_IDS)] | None = None
    node_id: UUID | None = Field(default=None, description="A folder, with the folders below it.")
    doc_type: DocType | None = None

    @model_validator(mode="after")
    def _check_selection(self) -> Self:
        selects_documents = any(
            value is not None for value in (self.document_ids, self.node_id, self.doc_type)
        )
        if self.query is None and self.filters is not None:
            raise ValueError("filters belong to a search: pass a query")
        if self.query is not None and selects_documents:
            raise ValueError("pass either a query with filters, or a selection of documents")
        return self


def routes(service: Service) -> APIRouter:
    """Return the route of exports; they contain what the requester may see."""
    api = APIRouter(prefix="/v1/documents/exports", tags=["documents"], route_class=StrictRoute)
    writes = Annotated[Requester, service.allows(Scope.WRITE)]
    exports = service.documents.exports

    @api.post("", status_code=202, response_model=Accepted, responses=problem_responses(413, 415))
    async def export(request: ExportRequest, requester: writes) -> Response:
        """Export documents or search results to files: artifacts of the job, with checksums.

        The job and its files are visible to you and to admins.
        """
        principal = document_principal(requester)
        if request.query is not None:
            handle = await exports.search(
                principal, request.query, request.filters, format=request.format, bom=request.bom
            )
        else:
            selection = dict(request)
            del selection["query"], selection["filters"]
            handle = await exports.documents(principal, **selection)
        return accepted(requester, handle.job_id, private_subject(principal))

    return api
