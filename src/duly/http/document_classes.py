"""What documents are: found out by jobs, confirmed by people, and where each kind belongs."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.responses import Response

from duly.documents.access import subject_of
from duly.documents.classes.classes import ClassEngine
from duly.documents.classes.shapes import ClassHistory, ClassModel, FilingRule, Unsure
from duly.documents.shapes import Document
from duly.http.answers import accepted, as_json
from duly.http.caller import Caller
from duly.http.document_shapes import DocType, visitor
from duly.http.params import After, Limit, Shown
from duly.http.problems import documented
from duly.http.service import Service
from duly.http.shapes import Accepted, Strict
from duly.http.strict import StrictRoute
from duly.model.access import Scope


class ClassificationRequest(Strict):
    """By whom a document is to be looked at."""

    engine: ClassEngine = Field(
        default="local",
        description="By the rules and the org's model, or by the service elsewhere that is set up.",
    )
    consent: bool = Field(
        default=False,
        strict=True,
        description="You agree that the beginning of its text is sent elsewhere, where it has to be.",
    )


class UnsureShown(Shown):
    """Documents to look at, the newest first; `after` asks for those that follow, and is null at the end."""

    unsure: list[Unsure]
    after: str | None


class TypeConfirmed(Strict):
    """What a document is."""

    doc_type: DocType


class FilingGiven(Strict):
    """Where documents of a type belong."""

    doc_type: DocType
    node_id: UUID | None = Field(description="The folder; null for no folder any more.")


class FilingShown(BaseModel):
    """Where documents of each type belong, as far as the folders are open to you."""

    rules: list[FilingRule]


class ClassModelsShown(BaseModel):
    """What was learned from the org's confirmations, the newest first."""

    models: list[ClassModel]


def routes(service: Service) -> APIRouter:
    """What people say counts more."""
    api = APIRouter(prefix="/v1/documents", tags=["documents"], route_class=StrictRoute)
    reads = Annotated[Caller, service.allows(Scope.READ)]
    writes = Annotated[Caller, service.allows(Scope.WRITE)]
    documents, classes = service.documents, service.documents.classes
    refusals = documented(404, 413, 415)

    @api.get("/filing", response_model=FilingShown, responses=documented())
    async def filing(who: reads) -> Response:
        """Where documents of each type belong."""
        return as_json(FilingShown(rules=[*await classes.filing(visitor(who))]))

    @api.put("/filing", response_model=FilingShown, responses=refusals)
    async def set_filing(request: FilingGiven, who: writes) -> Response:
        """Have documents of a type suggested for a folder."""
        await classes.set_filing(visitor(who), request.doc_type, request.node_id)
        return as_json(FilingShown(rules=[*await classes.filing(visitor(who))]))

    @api.get("/review", response_model=UnsureShown, responses=documented())
    async def review(who: reads, limit: Limit = 50, after: After = None) -> Response:
        """The documents whose type is too unsure to be believed, until somebody says what they are."""
        return as_json(
            UnsureShown.model_validate(await classes.review(visitor(who), limit=limit, after=after))
        )

    @api.get("/classifier", response_model=ClassModelsShown, responses=documented())
    async def class_models(who: reads) -> Response:
        """What was learned from the org's confirmations, the newest first."""
        return as_json(ClassModelsShown(models=[*await classes.models(visitor(who))]))

    @api.post("/classifier/train", status_code=202, response_model=Accepted, responses=documented())
    async def train(who: writes) -> Response:
        """Have the org's own model made anew of what was confirmed; it is used if it beats the rules."""
        handle = await classes.train(visitor(who))
        return accepted(who, handle.job_id, None, replayed=not handle.created)

    @api.post("/classifier/evaluate", status_code=202, response_model=Accepted, responses=documented())
    async def evaluate(who: writes) -> Response:
        """Have it measured how well types are told apart; the result has the confusion matrix."""
        handle = await classes.evaluate(visitor(who))
        return accepted(who, handle.job_id, None, replayed=not handle.created)

    @api.get("/{document_id}/classification", response_model=ClassHistory, responses=documented(404))
    async def classification(document_id: UUID, who: reads) -> Response:
        """What was said of a document, by whom and why; the newest first."""
        return as_json(await classes.history(visitor(who), document_id))

    @api.post(
        "/{document_id}/classification",
        status_code=202,
        response_model=Accepted,
        responses=documented(404, 413, 415),
    )
    async def classify(
        document_id: UUID, who: writes, request: ClassificationRequest | None = None
    ) -> Response:
        """Have it said anew what a document is, here or with your consent elsewhere."""
        asked = request or ClassificationRequest()
        handle = await classes.classify(visitor(who), document_id, engine=asked.engine, consent=asked.consent)
        return accepted(who, handle.job_id, subject_of(document_id), replayed=not handle.created)

    @api.put("/{document_id}/doc_type", response_model=Document, responses=refusals)
    async def confirm(document_id: UUID, request: TypeConfirmed, who: writes) -> Response:
        """Say what a document is. That counts, whatever is found out later; models learn from it."""
        await classes.confirm(visitor(who), document_id, request.doc_type)
        return as_json(await documents.get(visitor(who), document_id))

    return api
