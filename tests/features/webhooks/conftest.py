"""An endpoint; a receiver on loopback, and deliverers that may go there."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from duly import Duly
from duly.features.webhooks.allowed_urls import Places
from duly.features.webhooks.deliverer import Deliverer, DeliveryOptions
from duly.features.webhooks.service import Webhooks
from duly.features.webhooks.store import Endpoint
from tests.features.webhooks.administering import URL, WHY
from tests.features.webhooks.delivering import Make
from tests.features.webhooks.receiver import Receiver, receiving


@pytest.fixture
def webhooks(app: Duly) -> Webhooks:
    return app.webhooks


@pytest.fixture
async def endpoint(webhooks: Webhooks, org: uuid.UUID) -> Endpoint:
    return (await webhooks.create(org, URL, ["job.*"], **WHY)).endpoint


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as made:
        yield made


@pytest.fixture
async def make(app: Duly) -> AsyncIterator[Make]:
    """Makes deliverers that may go to loopback."""
    made: list[Deliverer] = []

    def deliverer(**options: Any) -> Deliverer:
        given = {"limit": timedelta(seconds=5), **options}
        made.append(Deliverer(app, Places(["127.0.0.1"]), DeliveryOptions(**given)))
        return made[-1]

    yield deliverer
    for one in made:
        await one.end()
