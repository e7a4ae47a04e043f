"""What documents are: found out by jobs, confirmed by people, and where each kind belongs."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.responses import Response

from duly.apps.documents.classification.models import (
    ClassificationHistory,
    ClassifierEngine,
    ClassifierModel,
    FilingRule,
    UnsureDocument,
)
from duly.apps.documents.folders.job_subjects import document_subject
from duly.apps.documents.http.models import DocType, visitor
from duly.apps.documents.models import Document
from duly.core.principal import Scope
from duly.features.jobs.models import Accepted
from duly.features.jobs.responses import accepted
from duly.http.params import After, PageSize, StrictModel
from duly.http.problems import problem_responses
from duly.http.requester import Requester
from duly.http.responses import ResponseModel, json_response
from duly.http.service import Service
from duly.http.strict_requests import StrictRoute


class ClassificationRequest(StrictModel):
    """By whom a document is to be looked at."""

    engine: ClassifierEngine = Field(
        default="local",
        description="By the rules and the org's model, or by the service elsewhere that is set up.",
    )
    consent: bool = Field(
        default=False,
        strict=True,
        description="You agree that the beginning of its text is sent elsewhere, where it has to be.",
    )


class UnsureShown(ResponseModel):
    """Documents to look at, the newest first; `after` asks for those that follow, and is null at the end."""

    unsure: list[UnsureDocument]
    after: str | None


class TypeConfirmed(StrictModel):
    """What a document is."""

    doc_type: DocType


class FilingGiven(StrictModel):
    """Where documents of a type belong."""

    doc_type: DocType
    node_id: UUID | None = Field(description="The folder; null for no folder any more.")


class FilingShown(BaseModel):
    """Where documents of each type belong, as far as the folders are open to you."""

    rules: list[FilingRule]


class ClassModelsShown(BaseModel):
    """What was learned from the org's confirmations, the newest first."""

    models: list[ClassifierModel]


def routes(service: Service) -> APIRouter:
    """What people say counts more."""
    api = APIRouter(prefix="/v1/documents", tags=["documents"], route_class=StrictRoute)
    reads = Annotated[Requester, service.allows(Scope.READ)]
    writes = Annotated[Requester, service.allows(Scope.WRITE)]
    documents, classes = service.documents, service.documents.classes
    refusals = problem_responses(404, 413, 415)

    @api.get("/filing", response_model=FilingShown, responses=problem_responses())
    async def filing(who: reads) -> Response:
        """Where documents of each type belong."""
        return json_response(FilingShown(rules=[*await classes.filing(visitor(who))]))

    @api.put("/filing", response_model=FilingShown, responses=refusals)
    async def set_filing(request: FilingGiven, who: writes) -> Response:
        """Have documents of a type suggested for a folder."""
        await classes.set_filing(visitor(who), request.doc_type, request.node_id)
        return json_response(FilingShown(rules=[*await classes.filing(visitor(who))]))

    @api.get("/review", response_model=UnsureShown, responses=problem_responses())
    async def review(who: reads, limit: PageSize = 50, after: After = None) -> Response:
        """The documents whose type is too unsure to be believed, until somebody says what they are."""
        return json_response(
            UnsureShown.model_validate(await classes.review(visitor(who), limit=limit, after=after))
        )

    @api.get("/classifier", response_model=ClassModelsShown, responses=problem_responses())
    async def class_models(who: reads) -> Response:
        """What was learned from the org's confirmations, the newest first."""
        return json_response(ClassModelsShown(models=[*await classes.models(visitor(who))]))

    @api.post("/classifier/train", status_code=202, response_model=Accepted, responses=problem_responses())
    async def train(who: writes) -> Response:
        """Have the org's own model made anew of what was confirmed; it is used if it beats the rules."""
        handle = await classes.train(visitor(who))
        return accepted(who, handle.job_id, None, replayed=not handle.created)

    @api.post("/classifier/evaluate", status_code=202, response_model=Accepted, responses=problem_responses())
    async def evaluate(who: writes) -> Response:
        """Have it measured how well types are told apart; the result has the confusion matrix."""
        handle = await classes.evaluate(visitor(who))
        return accepted(who, handle.job_id, None, replayed=not handle.created)

    @api.get(
        "/{document_id}/classification",
        response_model=ClassificationHistory,
        responses=problem_responses(404),
    )
    async def classification(document_id: UUID, who: reads) -> Response:
        """What was said of a document, by whom and why; the newest first."""
        return json_response(await classes.history(visitor(who), document_id))

    @api.post(
        "/{document_id}/classification",
        status_code=202,
        response_model=Accepted,
        responses=problem_responses(404, 413, 415),
    )
    async def classify(
        document_id: UUID, who: writes, request: ClassificationRequest | None = None
    ) -> Response:
        """Have it said anew what a document is, here or with your consent elsewhere."""
        asked = request or ClassificationRequest()
        handle = await classes.classify(visitor(who), document_id, engine=asked.engine, consent=asked.consent)
        return accepted(who, handle.job_id, document_subject(document_id), replayed=not handle.created)

    @api.put("/{document_id}/doc_type", response_model=Document, responses=refusals)
    async def confirm(document_id: UUID, request: TypeConfirmed, who: writes) -> Response:
        """Say what a document is. That counts, whatever is found out later; models learn from it."""
        await classes.confirm(visitor(who), document_id, request.doc_type)
        return json_response(await documents.get(visitor(who), document_id))

    return api
