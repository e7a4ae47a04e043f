"""The overview counts visible reviews and extractions, and the usage of the org."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from duly import Actor, Duly
from duly.apps.documents.folders.access import DocumentPrincipal
from duly.apps.documents.library import overview as room
from duly.apps.documents.models import Grant
from tests.apps.documents.stage import add, visitor
from tests.worker.working import settle_attempts


async def test_the_overview_counts_visible_reviews_and_extractions(
    library: Duly, anna: DocumentPrincipal, sql: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = library.documents
    empty = await documents.overview(anna)
    assert (empty.review, empty.extracting, empty.ended, empty.documents, empty.bytes) == (0, 0, {}, 0, 0)
    closed = await documents.folders.create(anna, "Closed")
    await library.members.set(anna.org_id, "boss", "admin", actor=Actor.operator("o"), reason="a test")
    boss = visitor(anna.org_id, "boss")
    await documents.folders.set_grants(boss, closed.node_id, [Grant(principal="user:anna", level="manage")])
    await add(library, anna, b"%PDF-1.7 and no more", "torn.pdf", engine="fast")
    await add(library, anna, b"%PDF-1.7 nor here", "hidden.pdf", engine="fast", node_id=closed.node_id)
    assert (await documents.overview(anna)).extracting == 2
    assert [one.extraction.status for one in await documents.recent_extractions(anna)] == ["queued", "queued"]
    await settle_attempts(library, 2)
    await add(library, anna, "zzz qqq", "words.txt", engine="fast")
    await settle_attempts(library, 1)
    eve = visitor(anna.org_id, "eve")
    mine, theirs = await documents.overview(anna), await documents.overview(eve)
    assert (mine.review, mine.extracting, mine.ended, mine.at_least) == (
        1,
        0,
        {"failed": 2, "done": 1},
        False,
    )
    assert (theirs.ended, mine.documents, mine.bytes > 0) == ({"failed": 1, "done": 1}, 3, True)
    assert mine.quotas.documents_max == 1_000_000
    [torn] = await documents.recent_extractions(visitor(anna.org_id, "eve"))
    assert (torn.name, torn.extraction.status, bool(torn.extraction.error_code)) == (
        "torn.pdf",
        "failed",
        True,
    )
    late = await documents.recent_extractions(anna)
    assert {one.name for one in late} == {"hidden.pdf", "torn.pdf"}
    ended = [one.extraction.finished_at for one in late]
    assert ended == sorted(ended, reverse=True), "two are read at a time: the newest first, whichever it is"
    monkeypatch.setattr(room, "_MAX_COUNTED", 1)
    assert (await documents.overview(anna)).at_least
    sql.execute("update documents.extractions set finished_at = finished_at - interval '8 days'")
    assert (await documents.overview(anna)).ended == {}
