"""Routes of classification: classify documents, confirm their types, train the classifier, file by type."""

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from duly.apps.documents.classification.models import (
    ClassificationHistory,
    ClassifierEngine,
    ClassifierModel,
    FilingRule,
    UnsureDocument,
)
from duly.apps.documents.classification.service import UnsurePage
from duly.apps.documents.folders.job_subjects import document_subject
from duly.apps.documents.models import Document
from duly.apps.documents.request_models import DocType, document_principal
from duly.core.principal import Scope
from duly.features.jobs.models import Accepted
from duly.features.jobs.responses import accepted
from duly.http.params import After, PageSize, StrictModel
from duly.http.problems import problem_responses
from duly.http.requester import Requester
from duly.http.responses import list_model, page_model
from duly.http.service import Service
from duly.http.strict_requests import StrictRoute


class ClassificationRequest(StrictModel):
    """The engine of a classification, and the consent that the remote one needs."""

    engine: ClassifierEngine = Field(
        default="local", description="The rules and the org's model, or the configured external service."
    )
    consent: bool = Field(
        default=False,
        strict=True,
        description="You agree that the beginning of the text is sent to an external service, if needed.",
    )


class TypeConfirmation(StrictModel):
    """The type of a document."""

    doc_type: DocType


class FilingRuleUpdate(StrictModel):
    """The folder for documents of a type."""

    doc_type: DocType
    node_id: UUID | None = Field(description="The folder; null removes the rule.")


UnsurePageResponse = page_model("unsure", UnsureDocument)
FilingRuleList = list_model("rules", FilingRule, "FilingRules")
ClassifierModelList = list_model("models", ClassifierModel, "ClassifierModels")


def routes(service: Service) -> APIRouter:
    """Return the routes of classification."""
    api = APIRouter(prefix="/v1/documents", tags=["documents"], route_class=StrictRoute)
    reads = Annotated[Requester, service.allows(Scope.READ)]
    writes = Annotated[Requester, service.allows(Scope.WRITE)]
    documents, classifications = service.documents, service.documents.classification
    refusals = problem_responses(404, 413, 415)

    @api.get("/filing", response_model=FilingRuleList, responses=problem_responses())
    async def filing(requester: reads) -> dict[str, Sequence[FilingRule]]:
        """List the folder for each type, as far as the folders are visible to you."""
        return {"rules": await classifications.filing(document_principal(requester))}

    @api.put("/filing", response_model=FilingRuleList, responses=refusals)
    async def set_filing(request: FilingRuleUpdate, requester: writes) -> dict[str, Sequence[FilingRule]]:
        """Set the folder that is suggested for documents of a type."""
        principal = document_principal(requester)
        await classifications.set_filing(principal, request.doc_type, request.node_id)
        return {"rules": await classifications.filing(principal)}

    @api.get("/review", response_model=UnsurePageResponse, responses=problem_responses())
    async def review(requester: reads, limit: PageSize = 50, after: After = None) -> UnsurePage:
        """List the documents whose type a person has to review, newest first."""
        return await classifications.review(document_principal(requester), limit=limit, after=after)

    @api.get("/classifier", response_model=ClassifierModelList, responses=problem_responses())
    async def class_models(requester: reads) -> dict[str, Sequence[ClassifierModel]]:
        """List the models trained on the org's confirmations, newest first."""
        return {"models": await classifications.models(document_principal(requester))}

    @api.post("/classifier/train", status_code=202, response_model=Accepted, responses=problem_responses())
    async def train(requester: writes) -> Response:
        """Train the org's model on the confirmed types; it is used if it is more accurate than the rules."""
        handle = await classifications.train(document_principal(requester))
        return accepted(requester, handle.job_id, None, replayed=not handle.created)

    @api.post("/classifier/evaluate", status_code=202, response_model=Accepted, responses=problem_responses())
    async def evaluate(requester: writes) -> Response:
        """Measure the accuracy of the classification; the result contains the confusion matrix."""
        handle = await classifications.evaluate(document_principal(requester))
        return accepted(requester, handle.job_id, None, replayed=not handle.created)

    @api.get(
        "/{document_id}/classification",
        response_model=ClassificationHistory,
        responses=problem_responses(404),
    )
    async def classification(document_id: UUID, requester: reads) -> ClassificationHistory:
        """Get the classifications and confirmations of a document with their evidence, newest first."""
        return await classifications.history(document_principal(requester), document_id)

    @api.post("/{document_id}/classification", status_code=202, response_model=Accepted, responses=refusals)
    async def classify(
        document_id: UUID, requester: writes, request: ClassificationRequest | None = None
    ) -> Response:
        """Classify a document again: locally, or with your consent by an external service."""
        options = dict(request or ClassificationRequest())
        handle = await classifications.classify(document_principal(requester), document_id, **options)
        subject = document_subject(document_id)
        return accepted(requester, handle.job_id, subject, replayed=not handle.created)

    @api.put("/{document_id}/doc_type", response_model=Document, responses=refusals)
    async def confirm(document_id: UUID, request: TypeConfirmation, requester: writes) -> Document:
        """Confirm the type of a document. It outranks later classifications, and models learn from it."""
        principal = document_principal(requester)
        await classifications.confirm(principal, document_id, request.doc_type)
        return await documents.get(principal, document_id)

    return api
