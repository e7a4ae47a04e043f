"""Fixtures: an endpoint, a receiver on loopback, and deliverers that may connect to it."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from duly import Duly
from duly.features.webhooks.allowed_destinations import AllowedUrls
from duly.features.webhooks.deliverer import Deliverer, DeliveryOptions
from duly.features.webhooks.models import Endpoint
from duly.features.webhooks.service import Webhooks
from tests.features.webhooks.delivering import Make
from tests.features.webhooks.receiver import Receiver, receiving
from tests.features.webhooks.sample_deliveries import URL, WHY


@pytest.fixture
def webhooks(app: Duly) -> Webhooks:
    return app.webhooks


@pytest.fixture
async def endpoint(webhooks: Webhooks, org: uuid.UUID) -> Endpoint:
    return (await webhooks.create(org, URL, ["job.*"], **WHY)).endpoint


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as receiver:
        yield receiver


@pytest.fixture
async def make(app: Duly) -> AsyncIterator[Make]:
    """Create deliverers that may connect to loopback."""
    deliverers: list[Deliverer] = []

    def deliverer(**options: Any) -> Deliverer:
        settings = {"timeout": timedelta(seconds=5), **options}
        deliverers.append(Deliverer(app, AllowedUrls(["127.0.0.1"]), DeliveryOptions(**settings)))
        return deliverers[-1]

    yield deliverer
    for created in deliverers:
        await created.end()
