"""The service conforms to its OpenAPI document: every operation, by every check of schemathesis.

DULY_CONTRACT_EXAMPLES=200 DULY_CONTRACT_SEED=7 ./dev test tests/http/test_contract.py
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from fastapi import FastAPI

from duly import Duly
from duly.http.application import create_app
from duly.http.options import HttpOptions
from tests.http.conftest import served
from tests.http.contract import check
from tests.http.requests import platform_key
from tests.http.sample_org import create_sample_org, declare

PLATFORM = "^/v1/platform"
JOBS = "^/v1/(jobs|results|blobs|feed|dead-letters)|^/analyze"
OTHERS = f"^(?!{PLATFORM[1:]}|{JOBS[1:]})"


@pytest.fixture
def options() -> HttpOptions:
    """No rate limit, no long waits, and keys that still work after schemathesis revoked them."""
    return HttpOptions(
        requests_per_second=1e9,
        burst=10**9,
        wait_max=timedelta(milliseconds=10),
        stream_heartbeat=timedelta(milliseconds=10),
        authentication_ttl=timedelta(hours=1),
    )


@pytest.fixture
def api(app: Duly, options: HttpOptions) -> FastAPI:
    declare(app)
    return create_app(app, options)


# The service runs in this process and uses random numbers itself.
@pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("paths", [JOBS, OTHERS, PLATFORM], ids=["jobs", "others", "platform"])
async def test_the_service_conforms_to_its_openapi_document(app: Duly, api: FastAPI, paths: str) -> None:
    org = await create_sample_org(app, "Acme")
    key = await platform_key(app) if paths == PLATFORM else org.key.text
    async with served(api) as address:
        report = await asyncio.to_thread(check, address, key, org, paths)
    assert not report.failures, "\n\n".join(f"{name}: {example}" for name, example in report.failures.items())
    # A service that refuses every request would conform too.
    assert len(report.served()) > 0.7 * len({operation for operation, _ in report.responses})
