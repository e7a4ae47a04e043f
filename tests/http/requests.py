"""Requests of many tests: reasons, invalid texts, and resources of other orgs that must look unknown."""

from __future__ import annotations

import uuid

import httpx

from duly import Duly
from duly.core.job import SYSTEM_ORG
from tests.http.conftest import key_of

REASON = {"reason": "the provider is back"}
JSON = {"content-type": "application/json"}
INVALID_TEXTS = ("\0", "a\0b", "x" * 5000)
"""Texts that every text field refuses."""


async def platform_key(app: Duly) -> str:
    """Create an API key with the platform scope; return its text."""
    return await key_of(app, SYSTEM_ORG, "platform")


async def check_looks_unknown(
    client: httpx.AsyncClient, method: str, path: str, foreign: object, **arguments: object
) -> None:
    """Check that the id of another org gets the same response, byte for byte, as an unknown id."""

    async def request(resource_id: object) -> tuple[int, str]:
        response = await client.request(method, path.format(resource_id), **arguments)  # type: ignore[arg-type]
        text = response.text.replace(response.headers["x-request-id"], "R").replace(str(resource_id), "I")
        return response.status_code, text

    unknown = uuid.uuid4() if isinstance(foreign, uuid.UUID) else f"{foreign}"[:-1] + "Z"
    foreign_response, unknown_response = await request(foreign), await request(unknown)
    assert foreign_response == unknown_response, (method, path)
    assert foreign_response[0] == 404, (method, path, foreign_response)
