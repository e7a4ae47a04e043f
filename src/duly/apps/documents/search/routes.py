"""The route of search."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query

from duly.apps.documents.request_models import document_principal
from duly.apps.documents.search.models import Filters, SearchResult
from duly.apps.documents.search.query import MAX_QUERY_LENGTH
from duly.core import payload
from duly.core.errors import ContractError, PayloadRefused
from duly.core.principal import Scope
from duly.http.params import MAX_INT32, Timestamp
from duly.http.problems import problem_responses
from duly.http.requester import Requester
from duly.http.service import Service
from duly.http.strict_requests import StrictRoute

_MAX_FILTER_VALUES = 50
Ids = Annotated[list[UUID] | None, Query(max_length=_MAX_FILTER_VALUES)]
Names = Annotated[
    list[Annotated[str, Query(pattern=r"^\w+$", max_length=40)]] | None, Query(max_length=_MAX_FILTER_VALUES)
]
PageNumber = Annotated[int | None, Query(ge=1, le=MAX_INT32)]
SearchQuery = Annotated[
    str,
    Query(
        min_length=1,
        max_length=MAX_QUERY_LENGTH,
        description='Words, any of which may match; or operators: `"a phrase"`, `-not`, `OR`.',
    ),
]


def routes(service: Service) -> APIRouter:
    """Return the route of search; each requester finds documents in visible folders."""
    api = APIRouter(prefix="/v1/documents/search", tags=["documents"], route_class=StrictRoute)
    reads = Annotated[Requester, service.allows(Scope.READ)]
    documents = service.documents

    @api.get("", response_model=SearchResult, responses=problem_responses(404))
    async def search(
        requester: reads,
        q: SearchQuery,
        limit: Annotated[int, Query(ge=1, le=100)] = 20,
        offset: Annotated[int, Query(ge=0, le=1_000)] = 0,
        group: Annotated[bool, Query(description="Return the best passage of each document.")] = False,
        document_id: Ids = None,
        node_id: Annotated[Ids, Query(description="Folders, with the folders below them.")] = None,
        doc_type: Names = None,
        language: Names = None,
        element_type: Names = None,
        page_from: PageNumber = None,
        page_to: PageNumber = None,
        created_from: Timestamp | None = None,
        created_to: Annotated[Timestamp | None, Query(description="Exclusive.")] = None,
        metadata: Annotated[
            str | None,
            Query(max_length=2_000, description="A JSON object that the document's metadata contains."),
        ] = None,
    ) -> SearchResult:
        """Search passages, best first, with highlighted fragments.

        Typos and compound words are tolerated; `corrected` tells the replaced words. A document without text
        is found by its name.
        """
        filters = Filters(
            documents=_values(document_id),
            nodes=_values(node_id),
            doc_types=_values(doc_type),
            languages=_values(language),
            element_types=_values(element_type),
            page_from=page_from,
            page_to=page_to,
            created_from=created_from,
            created_to=created_to,
            metadata=None if metadata is None else _parse_metadata(metadata),
        )
        with _query_errors_name_q():
            return await documents.search(
                document_principal(requester), q, filters, limit=limit, offset=offset, group=group
            )

    return api


def _values(values: list[Any] | None) -> tuple[Any, ...] | None:
    return tuple(values) if values else None


@contextmanager
def _query_errors_name_q() -> Iterator[None]:
    """Name the query in errors as the parameter is named."""
    try:
        yield
    except ContractError as error:
        error.field = "q" if error.field == "query" else error.field
        raise


def _parse_metadata(text: str) -> dict[str, Any]:
    try:
        metadata = payload.parse_payload(text)
        payload.check_payload(metadata, len(text), "metadata")
    except PayloadRefused as error:
        error.field = "metadata"
        raise
    if not isinstance(metadata, dict):
        raise ContractError("not an object", field="metadata", fix='write it as {"year": 2026}')
    return metadata
