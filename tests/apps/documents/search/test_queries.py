"""Operators, filters, pages, and invalid queries."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from duly.apps.documents.search.models import Filters
from duly.apps.documents.search.query import parse_query
from duly.core.errors import ContractError
from tests.apps.documents.search.indexed_documents import IndexedDocuments

MAY, JUNE = datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)


OPERATORS = {
    '"Miete der Wohnung"': ["a"],
    '"Wohnung Miete"': [],
    "Miete -Garage": ["a", "c"],
    'Miete -"der Garage"': ["a", "c"],
    "Scheune OR Garage": ["b", "c"],
    "Wohnung Miete OR Scheune": ["a", "c"],
    '"Miete" Mai': ["a", "b"],
    '"Elefant"': [],
    '"der die das"': [],
    '-Miete "Kaution"': ["d"],
}


async def test_quotes_minus_and_or_are_operators(documents: IndexedDocuments) -> None:
    await documents.put("a", "Die Miete der Wohnung ist im Mai fällig.")
    await documents.put("b", "Die Miete der Garage ist im Mai fällig.")
    await documents.put("c", "Die Miete für die Scheune.")
    await documents.put("d", "Kaution")
    for query, names in OPERATORS.items():
        found = await documents.find(query)
        assert (query, sorted(hit.name for hit in found.hits)) == (query, names)
        assert (found.total, found.exact) == (len(names), True)


FILTERS: list[tuple[dict[str, Any], list[str]]] = [
    ({"doc_types": ("invoice",)}, ["b"]),
    ({"doc_types": ("invoice", "letter")}, ["b", "c"]),
    ({"languages": ("en",)}, ["c"]),
    ({"element_types": ("Table",)}, ["b"]),
    ({"page_from": 2}, ["a"]),
    ({"page_from": 1, "page_to": 1}, ["a", "b", "c"]),
    ({"created_from": MAY}, ["b", "c"]),
    ({"created_from": MAY, "created_to": JUNE}, ["b"]),
    ({"metadata": {"year": 2024}}, ["a"]),
    ({"metadata": {"year": "2024"}}, []),
    ({"doc_types": ()}, []),
]


async def test_filters_restrict_the_hits(documents: IndexedDocuments) -> None:
    await documents.put("a", "Miete eins", "Miete zwei", metadata={"year": 2024, "tags": ["x"]})
    await documents.put("b", "Miete drei", kind="Table", doc_type="invoice", created_at=MAY)
    await documents.put("c", "Miete four", language="en", doc_type="letter", created_at=JUNE)
    for filters, names in FILTERS:
        assert (filters, sorted({*await documents.names("Miete", Filters(**filters))})) == (filters, names)


async def test_a_single_document_is_searched_for_a_common_word(documents: IndexedDocuments) -> None:
    await documents.put("many", *["Der Vertrag gilt."] * 700)
    one = await documents.put("one", "Noch ein Vertrag.", "Und nichts.")
    found = await documents.find("Vertrag", Filters(documents=(one,)))
    assert [(hit.name, hit.chunk_index) for hit in found.hits] == [("one", 0)]
    assert (found.total, found.exact) == (1, True)


async def test_grouping_returns_the_best_passage_of_each_document(documents: IndexedDocuments) -> None:
    await documents.put("a", "Miete und mehr Text dazu", "Miete Miete Miete", "Miete")
    await documents.put("b", "Die Miete ist hier nur eines von vielen anderen Worten.")
    found = await documents.find("Miete", group=True)
    assert [(hit.name, hit.chunk_index) for hit in found.hits] == [("a", 1), ("b", 0)]
    assert found.total == 2


async def test_pages_follow_one_another_and_end(documents: IndexedDocuments) -> None:
    await documents.put("a", *[f"Miete Nummer {number}" for number in range(7)])
    pages = [await documents.find("Miete", limit=3, offset=offset) for offset in (0, 3, 6, 9)]
    assert [[hit.chunk_index for hit in page.hits] for page in pages] == [[0, 1, 2], [3, 4, 5], [6], []]
    assert [page.more for page in pages] == [True, True, False, False]
    assert {page.total for page in pages} == {7}


@pytest.mark.parametrize("query", ["", "  ", "?!", "x" * 501, "a\x00b", "\ud800", "-Miete", "a OR -b"])
def test_an_invalid_query_is_refused(query: str) -> None:
    with pytest.raises(ContractError) as refused:
        parse_query(query)
    assert (refused.value.field, bool(refused.value.fix)) == ("query", True)


async def test_an_invalid_limit_or_offset_is_refused(documents: IndexedDocuments) -> None:
    for field, value in (("limit", 0), ("limit", 101), ("offset", 1001), ("offset", -1)):
        with pytest.raises(ContractError) as refused:
            await documents.find("Miete", **{field: value})  # type: ignore[arg-type]
        assert refused.value.field == field


async def test_a_filter_with_nul_or_surrogates_is_refused(documents: IndexedDocuments) -> None:
    for bad in ("\x00", "\ud800"):
        with pytest.raises(ContractError) as refused:
            await documents.find("Miete", Filters(metadata={"a": bad}))
        assert refused.value.field == "filters"


async def test_a_search_in_an_empty_org_finds_nothing(documents: IndexedDocuments) -> None:
    assert (await documents.find("Miete")).total == 0


SIGNS = [*"aMä ß\"'-|&!()<>:*\\%_.,0+@/\t\n", "OR ", "Miete ", "👍", "e\u0301", "İ"]
SOUP = st.lists(st.sampled_from(SIGNS), max_size=60).map("".join) | st.text(max_size=500)


def soups() -> list[str]:
    made: list[str] = []

    @settings(max_examples=120, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(SOUP)
    def gather(query: str) -> None:
        made.append(query)

    gather()
    return made


async def test_random_queries_do_not_fail(documents: IndexedDocuments) -> None:
    await documents.put("a'b\\c", "Die Miete 'a' \\ a.b@c.de <b> : * 100% _ İstanbul")
    answered = 0
    for query in [*soups(), "'", "\\", "a & b | !c <-> d:*", "%(x)s", '"' * 500, "a " * 250, "- -- -a-b"]:
        with suppress(ContractError):
            found = await documents.find(query)
            assert found.total == len(found.hits) <= 1
            answered += 1
    assert answered > 20
