"""A shelf of documents."""

from __future__ import annotations

from uuid import UUID

import pytest

from duly import Duly
from tests.apps.documents.search.shelf import Shelf


@pytest.fixture
def shelf(app: Duly, org: UUID) -> Shelf:
    return Shelf(app, org)
