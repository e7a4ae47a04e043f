"""API keys of the org: made, listed, rotated, revoked. Their text is in the answer that makes them only."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field
from starlette.responses import Response

from duly.control.keys import NewKey
from duly.http.answers import as_json
from duly.http.caller import Caller
from duly.http.params import After, Limit, Shown, Text, Why
from duly.http.problems import documented
from duly.http.service import Service
from duly.http.strict import StrictRoute
from duly.http.values import NUMERIC, Moment
from duly.model.access import Scope

KeyId = Annotated[str, Path(min_length=1, max_length=100)]
_DAY = 24 * 60 * 60


class KeyRequest(Why):
    """A key to be made; it allows nothing that whoever makes it may not do."""

    name: Text
    scopes: list[Scope] = Field(min_length=1, max_length=len(Scope))
    environment: str = Field(default="live", pattern="^[a-z]{1,20}$")
    expires_at: Moment | None = Field(default=None, description="Without it, the key has no end.")


class Rotation(Why):
    """How long the old key counts beside the new one."""

    overlap_seconds: Annotated[int, Field(ge=0, le=90 * _DAY), NUMERIC] = _DAY


class KeyShown(Shown):
    """A key: everything but its text."""

    key_id: str
    name: str
    environment: str
    scopes: list[str]
    created_by: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None = Field(description="Of a key that was rotated, when its overlap is over.")
    last_used_at: datetime | None = Field(description="To the minute.")
    alive: bool


class KeyMade(KeyShown):
    """A new key with its text, which is shown this once and kept nowhere."""

    text: str


class KeysShown(Shown):
    """Some keys; `after` asks for those that follow, and is null at the end."""

    keys: list[KeyShown]
    after: str | None


def routes(service: Service) -> APIRouter:
    """For those who look after the org."""
    api = APIRouter(prefix="/v1/keys", tags=["keys"], route_class=StrictRoute)
    administers = Annotated[Caller, service.allows(Scope.ADMIN)]

    @api.get("", response_model=KeysShown, responses=documented())
    async def list_keys(who: administers, limit: Limit = 50, after: After = None) -> Response:
        """The keys of the org, also those that have ended."""
        return as_json(
            KeysShown.model_validate(await service.keys.list(who.org_id, limit=limit, after=after))
        )

    @api.post("", status_code=201, response_model=KeyMade, responses=documented(409, 413, 415))
    async def create(request: KeyRequest, who: administers) -> Response:
        """Make a key, with no more scopes than one's own."""
        check_scopes(who, request.scopes)
        made = await service.keys.create(who.org_id, actor=who.actor, **dict(request))
        return key_made(who, made)

    @api.get("/{key_id}", response_model=KeyShown, responses=documented(404))
    async def show(key_id: KeyId, who: administers) -> Response:
        """One key."""
        return as_json(KeyShown.model_validate(await service.keys.get(who.org_id, key_id)))

    @api.post("/{key_id}/revoke", response_model=KeyShown, responses=documented(404, 413, 415))
    async def revoke(key_id: KeyId, request: Why, who: administers) -> Response:
        """End a key at once. Asked again, it changes nothing."""
        ended = await service.keys.revoke(who.org_id, key_id, actor=who.actor, reason=request.reason)
        return as_json(KeyShown.model_validate(ended))

    @api.post(
        "/{key_id}/rotate", status_code=201, response_model=KeyMade, responses=documented(404, 409, 413, 415)
    )
    async def rotate(key_id: KeyId, request: Rotation, who: administers) -> Response:
        """Make a successor that may do the same; the old key counts beside it until the overlap is over."""
        old = await service.keys.get(who.org_id, key_id)
        check_scopes(who, old.scopes)
        made = await service.keys.rotate(
            who.org_id,
            key_id,
            overlap=timedelta(seconds=request.overlap_seconds),
            actor=who.actor,
            reason=request.reason,
        )
        return key_made(who, made)

    return api


def check_scopes(who: Caller, scopes: Iterable[str]) -> None:
    """Raise if somebody would give more than they have."""
    for scope in scopes:
        who.principal.require(Scope(scope))


def key_made(who: Caller, made: NewKey) -> Response:
    """The one answer that has the text of a key."""
    said = KeyMade(**KeyShown.model_validate(made.key).model_dump(), text=made.text)
    headers = {"location": who.link(f"/v1/keys/{made.key.key_id}"), "cache-control": "no-store"}
    return as_json(said, 201, headers)
