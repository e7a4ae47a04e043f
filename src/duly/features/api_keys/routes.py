"""Routes of API keys: create, list, rotate and revoke them."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field
from starlette.responses import Response

from duly.core.principal import Scope
from duly.features.api_keys.models import ApiKey, ApiKeyPage, NewApiKey
from duly.http.params import NUMERIC, After, PageSize, ReasonBody, Text, Timestamp
from duly.http.problems import problem_responses
from duly.http.requester import Requester
from duly.http.responses import json_response, page_model, response_model
from duly.http.service import Service
from duly.http.strict_requests import StrictRoute

KeyId = Annotated[str, Path(min_length=1, max_length=100)]
_DAY_SECONDS = 24 * 60 * 60


class KeyRequest(ReasonBody):
    """An API key; it has no scope that its creator lacks."""

    name: Text
    scopes: list[Scope] = Field(min_length=1, max_length=len(Scope))
    environment: str = Field(default="live", pattern="^[a-z]{1,20}$")
    expires_at: Timestamp | None = Field(default=None, description="Default: the key does not expire.")


class KeyRotation(ReasonBody):
    """How long the old key works beside the new one."""

    overlap_seconds: Annotated[int, Field(ge=0, le=90 * _DAY_SECONDS), NUMERIC] = _DAY_SECONDS


KeyResponse = response_model(ApiKey)
KeySecretResponse = response_model(
    KeyResponse, "ApiKeyWithSecret", text=(str, "The secret key; it is stored nowhere.")
)
KeyPageResponse = page_model("keys", KeyResponse)


def routes(service: Service) -> APIRouter:
    """Return the routes of API keys."""
    api = APIRouter(prefix="/v1/keys", tags=["keys"], route_class=StrictRoute)
    administers = Annotated[Requester, service.allows(Scope.ADMIN)]
    api_keys = service.api_keys

    @api.get("", response_model=KeyPageResponse, responses=problem_responses())
    async def list_keys(requester: administers, limit: PageSize = 50, after: After = None) -> ApiKeyPage:
        """List the API keys of the org, including expired and revoked ones."""
        return await api_keys.list(requester.org_id, limit=limit, after=after)

    @api.post(
        "", status_code=201, response_model=KeySecretResponse, responses=problem_responses(409, 413, 415)
    )
    async def create(request: KeyRequest, requester: administers) -> Response:
        """Create an API key, with no scope that the requester lacks."""
        check_scopes(requester, request.scopes)
        created = await api_keys.create(requester.org_id, actor=requester.actor, **dict(request))
        return key_secret_response(requester, created)

    @api.get("/{key_id}", response_model=KeyResponse, responses=problem_responses(404))
    async def show(key_id: KeyId, requester: administers) -> ApiKey:
        """Get an API key."""
        return await api_keys.get(requester.org_id, key_id)

    @api.post("/{key_id}/revoke", response_model=KeyResponse, responses=problem_responses(404, 413, 415))
    async def revoke(key_id: KeyId, request: ReasonBody, requester: administers) -> ApiKey:
        """Revoke an API key. Idempotent."""
        return await api_keys.revoke(requester.org_id, key_id, actor=requester.actor, reason=request.reason)

    @api.post(
        "/{key_id}/rotate",
        status_code=201,
        response_model=KeySecretResponse,
        responses=problem_responses(404, 409, 413, 415),
    )
    async def rotate(key_id: KeyId, request: KeyRotation, requester: administers) -> Response:
        """Rotate an API key: the new one has the same scopes, the old one works until the overlap ends."""
        check_scopes(requester, (await api_keys.get(requester.org_id, key_id)).scopes)
        created = await api_keys.rotate(
            requester.org_id,
            key_id,
            overlap=timedelta(seconds=request.overlap_seconds),
            actor=requester.actor,
            reason=request.reason,
        )
        return key_secret_response(requester, created)

    return api


def check_scopes(requester: Requester, scopes: Iterable[str]) -> None:
    """Raise if the requester would grant a scope that it lacks."""
    for scope in scopes:
        requester.principal.require(Scope(scope))


def key_secret_response(requester: Requester, created: NewApiKey) -> Response:
    """Return 201 with the secret of a new key: no other response contains it."""
    body = KeySecretResponse.model_validate({**dict(created.key), "text": created.text})
    headers = {"location": requester.link(f"/v1/keys/{created.key.key_id}"), "cache-control": "no-store"}
    return json_response(body, 201, headers)
