"""Requests about documents."""

from __future__ import annotations

from typing import Any

import httpx

DOCUMENTS = "/v1/documents"


async def send(
    client: httpx.AsyncClient, data: bytes | str, file: str = "brief.txt", **fields: str
) -> dict[str, Any]:
    """What the service says of a file that nobody is to read, unless the test says so."""
    content = data.encode() if isinstance(data, str) else data
    answer = await client.post(DOCUMENTS, files={"file": (file, content)}, data={"engine": "none", **fields})
    assert answer.status_code in (200, 201), answer.text
    return {**answer.json(), "status": answer.status_code}


async def folder(client: httpx.AsyncClient, name: str, **more: Any) -> str:
    """The id of a new folder."""
    answer = await client.post(f"{DOCUMENTS}/folders", json={"name": name, **more})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["node_id"])


def id_of(key: str) -> str:
    """As folders name whoever has this key."""
    return f"api_key:{key.split('_')[2]}"
