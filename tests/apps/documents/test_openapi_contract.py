"""What the OpenAPI document says of documents is what the service does.

DULY_CONTRACT_EXAMPLES=200 DULY_CONTRACT_SEED=7 ./dev test tests/apps/documents/http/test_contract.py
"""

from __future__ import annotations

import asyncio
import os
import re
import uuid
from datetime import timedelta
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from duly import Duly
from duly.http.options import HttpOptions
from tests.apps.documents.http_requests import DOCUMENTS, folder, send
from tests.http import contract
from tests.http.conftest import key_of, served
from tests.worker.working import WAIT_TIMEOUT, working

NOT_DESCRIBED = re.compile(
    contract.NOT_DESCRIBED.pattern
    + r"|q|remote_path|files.*"  # words, and paths that stay below
    + r"|grants|body|filters.*"  # everybody once; one with, or without, another
    + r"|upload_id|part",  # null where nothing is to be sent; of those that there are
    re.DOTALL,
)
ALSO_IDS = re.compile(f"{DOCUMENTS}/(search|uploads|folders|connectors|filing|classifier|exports|review)")
THOROUGH = "DULY_CONTRACT_EXAMPLES" in os.environ
KNOWN = ("document_id", "node_id", "upload_id", "connector_id")


@pytest.fixture
def options() -> HttpOptions:
    """No limit is in the way, and no key can be lost by revoking it."""
    return HttpOptions(requests_per_second=1e9, burst=10**9, authentication_ttl=timedelta(hours=1))


@pytest.fixture
async def ids(http: httpx.AsyncClient, library: Duly, org: uuid.UUID) -> dict[str, list[str]]:
    """Some of everything: what is deleted meanwhile is not all there is."""
    found: dict[str, list[str]] = {name: [] for name in KNOWN}
    read = await send(http, "Brief", engine="fast")
    async with working(library):
        await library.handle(read["job_id"], org_id=org).wait(WAIT_TIMEOUT)
    for number in range(3):
        sent = await send(http, f"Brief {number}") if number else read
        upload = await http.post(f"{DOCUMENTS}/uploads", json={"sha256": f"{number:064}", "size": 1})
        account = {"provider": "dropbox", "name": str(number), "secret_ref": "file:dropbox"}
        connector = await http.post(f"{DOCUMENTS}/connectors", json=account)
        found["document_id"].append(sent["document"]["document_id"])
        found["node_id"].append(await folder(http, str(number)))
        found["upload_id"].append(upload.json()["upload_id"])
        found["connector_id"].append(connector.json()["connector_id"])
    return found


# The service runs in this process, and draws random numbers of its own meanwhile.
@pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")
@pytest.mark.timeout(7200)
async def test_the_openapi_document_matches_the_service(
    library: Duly, api: FastAPI, org: uuid.UUID, ids: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    key = await key_of(library, org)
    monkeypatch.setattr(contract, "_settings", lambda address, key, _: _settings(address, key, ids))
    monkeypatch.setattr(contract, "NOT_DESCRIBED", NOT_DESCRIBED)
    monkeypatch.setattr(contract, "PATHS_THAT_ARE_ALSO_IDS", ALSO_IDS)
    async with served(api) as address:
        report = await asyncio.to_thread(contract.check, address, key, None, f"^{DOCUMENTS}")  # type: ignore[arg-type]
    assert not report.failures, "\n\n".join(f"{name}: {example}" for name, example in report.failures.items())
    assert len(report.served()) > 0.7 * len({operation for operation, _ in report.responses})


def _settings(address: str, key: str, ids: dict[str, list[str]]) -> dict[str, Any]:
    return {
        "seed": contract.SEED,
        "base-url": address,
        "headers": {"Authorization": f"Bearer {key}"},
        "continue-on-failure": True,
        "request-timeout": 30,
        "generation": {"max-examples": contract.EXAMPLES, "no-shrink": True, "database": "none"},
        "cache": {"enabled": False},
        "phases": {"stateful": {"enabled": False}, "coverage": {"enabled": THOROUGH}},
        "dictionaries": {name: {"values": values} for name, values in ids.items()},
        "parameters": {f"path.{name}": {"dictionary": name, "probability": 0.7} for name in ids},
    }
