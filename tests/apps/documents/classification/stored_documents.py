"""Insert documents as they are after their extraction."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from typing import Any

import psycopg

from duly import Actor
from duly.apps.documents.folders.access import DocumentPrincipal

Sql = psycopg.Connection[Any]


def visitor(org: uuid.UUID, name: str = "u1") -> DocumentPrincipal:
    return DocumentPrincipal(org, Actor.user(name))


def put(
    sql: Sql, org: uuid.UUID, pages: Sequence[str], name: str = "scan.pdf", node: uuid.UUID | None = None
) -> uuid.UUID:
    """Insert a document with these pages, a passage each."""
    document_id = uuid.uuid4()
    content = "\f".join(pages).encode()
    sql.execute(
        "insert into documents.documents (org_id, document_id, node_id, name, sha256, size, media_type,"
        " status, created_by) values (%s, %s, %s, %s, %s, %s, 'application/pdf', 'extracted', 'user:u1')",
        [org, document_id, node, name, hashlib.sha256(content).hexdigest(), len(content) + 1],
    )
    with sql.cursor() as cursor:
        cursor.executemany(
            "insert into documents.document_chunks (org_id, document_id, chunk_index, page_number,"
            " element_type, text) values (%s, %s, %s, %s, 'NarrativeText', %s)",
            [[org, document_id, index, index + 1, text] for index, text in enumerate(pages)],
        )
    return document_id


def folder(sql: Sql, org: uuid.UUID, name: str, *, only_for: str | None = None) -> uuid.UUID:
    """Insert a folder, for one principal only if named."""
    row = sql.execute(
        "insert into documents.nodes (org_id, name, created_by) values (%s, %s, 'user:u1') returning node_id",
        [org, name],
    ).fetchone()
    assert row
    if only_for is not None:
        sql.execute(
            "insert into documents.node_grants (org_id, node_id, principal, level, granted_by)"
            " values (%s, %s, %s, 'manage', 'user:u1')",
            [org, row[0], only_for],
        )
    node: uuid.UUID = row[0]
    return node


def shown(sql: Sql, document_id: uuid.UUID) -> tuple[Any, ...]:
    """Return the type of a document, and whether it is confirmed."""
    row = sql.execute(
        "select doc_type, doc_type_confirmed from documents.documents where document_id = %s", [document_id]
    ).fetchone()
    assert row
    return row
