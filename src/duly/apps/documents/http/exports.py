"""Documents and search results given out as files, by a job whose files only the caller sees."""

from typing import Annotated, Self
from uuid import UUID

from fastapi import APIRouter
from pydantic import Field, model_validator
from starlette.responses import Response

from duly.apps.documents.exports.models import Format
from duly.apps.documents.exports.service import MOST_IDS
from duly.apps.documents.folders.job_subjects import private_subject
from duly.apps.documents.http.models import DocType, visitor
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
    """Which passages are asked for; as the parameters of a search."""

    created_from: Timestamp | None = None
    created_to: Timestamp | None = None


class ExportRequest(StrictModel):
    """What is to be given out: what a search finds, or documents; if nothing is said, all of them."""

    format: Format = "csv"
    bom: bool = Field(
        default=False,
        strict=True,
        description="Whether a table begins with a mark that Excel needs for UTF-8.",
    )
    query: Annotated[str, Field(min_length=1, max_length=MAX_QUERY_LENGTH)] | None = Field(
        default=None, description="What to look for; the best passages first."
    )
    filters: ExportFilters | None = Field(default=None, description="Of a search.")
    document_ids: Annotated[list[UUID], Field(min_length=1, max_length=MOST_IDS)] | None = None
    node_id: UUID | None = Field(default=None, description="A folder, with all that lies below it.")
    doc_type: DocType | None = None

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> Self:
        documents = (self.document_ids, self.node_id, self.doc_type)
        if self.query is None and self.filters is not None:
            raise ValueError("filters are of a search: say a query")
        if self.query is not None and any(one is not None for one in documents):
            raise ValueError("either a query with filters, or documents")
        return self


def routes(service: Service) -> APIRouter:
    """Everybody gets what they may see."""
    api = APIRouter(prefix="/v1/documents/exports", tags=["documents"], route_class=StrictRoute)
    writes = Annotated[Requester, service.allows(Scope.WRITE)]
    exports = service.documents.exports

    @api.post("", status_code=202, response_model=Accepted, responses=problem_responses(413, 415))
    async def export(request: ExportRequest, who: writes) -> Response:
        """Have documents, or what a search finds, written to files; the artifacts of the job, with checksums.

        The job and its files are for your eyes, and those of admins.
        """
        asker = visitor(who)
        if request.query is not None:
            handle = await exports.search(
                asker, request.query, request.filters, format=request.format, bom=request.bom
            )
        else:
            handle = await exports.documents(
                asker,
                document_ids=request.document_ids,
                node_id=request.node_id,
                doc_type=request.doc_type,
                format=request.format,
                bom=request.bom,
            )
        return accepted(who, handle.job_id, private_subject(asker))

    return api
