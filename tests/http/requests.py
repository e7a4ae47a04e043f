"""For tests of many routes: how an answer looks to somebody whom it must tell nothing."""

from __future__ import annotations

import uuid

import httpx

from duly import Duly
from duly.core.job import SYSTEM_ORG
from tests.http.conftest import key_of

WHY = {"reason": "the provider is back"}
JSON = {"content-type": "application/json"}
NOT_TEXTS = ("\0", "a\0b", "x" * 5000)
"""What no text of ours may be."""


async def platform_key(app: Duly) -> str:
    """The text of a new key for the installation."""
    return await key_of(app, SYSTEM_ORG, "platform")


async def check_blind(
    client: httpx.AsyncClient, method: str, path: str, foreign: object, **said: object
) -> None:
    """Another org's id must answer byte for byte like one that nobody has."""

    async def ask(which: object) -> tuple[int, str]:
        answer = await client.request(method, path.format(which), **said)  # type: ignore[arg-type]
        text = answer.text.replace(answer.headers["x-request-id"], "R").replace(str(which), "I")
        return answer.status_code, text

    nobody = uuid.uuid4() if isinstance(foreign, uuid.UUID) else f"{foreign}"[:-1] + "Z"
    of_foreign, of_nobody = await ask(foreign), await ask(nobody)
    assert of_foreign == of_nobody, (method, path)
    assert of_foreign[0] == 404, (method, path, of_foreign)
