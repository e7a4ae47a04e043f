"""Search: passages of documents, the best first."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query
from starlette.responses import Response

from duly.apps.documents.http.models import visitor
from duly.apps.documents.search.models import Filters, SearchResult
from duly.apps.documents.search.query import MAX_QUERY_LENGTH
from duly.core import payload
from duly.core.errors import ContractError, PayloadRefused
from duly.core.principal import Scope
from duly.http.params import MAX_INT32, Timestamp
from duly.http.problems import problem_responses
from duly.http.requester import Requester
from duly.http.responses import json_response
from duly.http.service import Service
from duly.http.strict_requests import StrictRoute

_MOST = 50
Ids = Annotated[list[UUID] | None, Query(max_length=_MOST)]
Names = Annotated[
    list[Annotated[str, Query(pattern=r"^\w+$", max_length=40)]] | None, Query(max_length=_MOST)
]
PageNumber = Annotated[int | None, Query(ge=1, le=MAX_INT32)]


def routes(service: Service) -> APIRouter:
    """Everybody finds what they may see."""
    api = APIRouter(prefix="/v1/documents/search", tags=["documents"], route_class=StrictRoute)
    reads = Annotated[Requester, service.allows(Scope.READ)]
    documents = service.documents

    @api.get("", response_model=SearchResult, responses=problem_responses(404))
    async def search(
        who: reads,
        q: Annotated[
            str,
            Query(
                min_length=1,
                max_length=MAX_QUERY_LENGTH,
                description='Words, of which each may be there; or operators: `"a phrase"`, `-not`, `OR`.',
            ),
        ],
        limit: Annotated[int, Query(ge=1, le=100)] = 20,
        offset: Annotated[int, Query(ge=0, le=1_000)] = 0,
        group: Annotated[bool, Query(description="The best passage of each document.")] = False,
        document_id: Ids = None,
        node_id: Annotated[Ids, Query(description="Folders, with all that lies below them.")] = None,
        doc_type: Names = None,
        language: Names = None,
        element_type: Names = None,
        page_from: PageNumber = None,
        page_to: PageNumber = None,
        created_from: Timestamp | None = None,
        created_to: Annotated[Timestamp | None, Query(description="Before this moment.")] = None,
        metadata: Annotated[
            str | None, Query(max_length=2_000, description="A JSON object; the document's has all of it.")
        ] = None,
    ) -> Response:
        """The passages that fit, the best first, with the places that show it.

        It is tolerant of slips of the pen and knows compound words; `corrected` says what was taken for what.
        A document without any text is found by its name.
        """
        filters = Filters(
            documents=_given(document_id),
            nodes=_given(node_id),
            doc_types=_given(doc_type),
            languages=_given(language),
            element_types=_given(element_type),
            page_from=page_from,
            page_to=page_to,
            created_from=created_from,
            created_to=created_to,
            metadata=None if metadata is None else _object(metadata),
        )
        with _named():
            found = await documents.search(visitor(who), q, filters, limit=limit, offset=offset, group=group)
        return json_response(found)

    return api


def _given(values: list[Any] | None) -> tuple[Any, ...] | None:
    return tuple(values) if values else None


@contextmanager
def _named() -> Iterator[None]:
    """Errors name the query as callers do."""
    try:
        yield
    except ContractError as error:
        error.field = "q" if error.field == "query" else error.field
        raise


def _object(text: str) -> dict[str, Any]:
    try:
        found = payload.parse_payload(text)
        payload.check_payload(found, len(text), "metadata")
    except PayloadRefused as error:
        error.field = "metadata"
        raise
    if not isinstance(found, dict):
        raise ContractError("not an object", field="metadata", fix='write it as {"year": 2026}')
    return found
