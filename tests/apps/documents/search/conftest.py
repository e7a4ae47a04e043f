"""Documents in the index."""

from __future__ import annotations

from uuid import UUID

import pytest

from duly import Duly
from tests.apps.documents.search.indexed_documents import IndexedDocuments


@pytest.fixture
def documents(app: Duly, org: UUID) -> IndexedDocuments:
    return IndexedDocuments(app, org)
