"""Databases with the tables of documents in them, and an application that includes documents."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from duly import Duly
from duly.apps.documents.folders.access import DocumentPrincipal
from duly.apps.documents.schema import SCHEMA
from duly.testing import DatabaseCluster, FreshDatabase
from tests.apps.documents.stage import visitor


@pytest.fixture
def fresh(cluster: DatabaseCluster) -> Iterator[FreshDatabase]:
    with cluster.fresh(schemas=[SCHEMA]) as made:
        yield made


@pytest.fixture
def library(app: Duly) -> Duly:
    app.include_documents()
    return app


@pytest.fixture
def anna(acting: uuid.UUID) -> DocumentPrincipal:
    """A member of the org without any special right."""
    return visitor(acting, "anna")
