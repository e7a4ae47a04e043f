"""Search queries for jobs."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.core.errors import ContractError
from duly.features.jobs.search_query import SearchQuery, format_terms, parse_query, term_filters


def test_terms_and_a_word() -> None:
    typed = '  status:failed type:report.*  payload.items.0.sku:X1 meta.name:"Möbel AG" subject:doc:7 doc-8 '
    terms = {
        "status": "failed",
        "type": "report.*",
        "payload.items.0.sku": "X1",
        "meta.name": "Möbel AG",
        "subject": "doc:7",
    }
    assert parse_query(typed) == SearchQuery(terms, "doc-8")
    assert term_filters(terms) == {
        "status": "failed",
        "job_type": "report.*",
        "payload": {"items.0.sku": "X1"},
        "metadata": {"name": "Möbel AG"},
        "subject_id": "doc:7",
    }
    assert parse_query("") == parse_query(" ") == parse_query('""') == SearchQuery({})
    assert parse_query('"doc:7 a"') == SearchQuery({}, "doc:7 a")


def test_filters_are_accepted_as_terms_and_times_are_parsed() -> None:
    found = parse_query("job_type:a fingerprint:f since:2026-11-16 until:2026-11-16T12:00:00+02:00")
    assert list(found.terms) == ["type", "kind", "since", "until"]
    filters = term_filters(found.terms)
    assert filters["created_after"] == datetime(2026, 11, 16, tzinfo=UTC)
    assert filters["created_before"] == datetime(2026, 11, 16, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("colour:red", "unknown filter 'colour'"),
        ("payload.:x", "unknown filter 'payload.'"),
        ("status:failed status:queued", "status is given twice"),
        ("status:", "status: has no value"),
        ('subject:""', "subject: has no value"),
        ("one two", "two words"),
        ('subject:"open', "invalid term"),
        (":x", "invalid term"),
    ],
)
def test_an_invalid_query_names_the_invalid_part(typed: str, message: str) -> None:
    with pytest.raises(ContractError, match=message) as caught:
        parse_query(typed)
    assert caught.value.field == "search"
    assert caught.value.fix


@pytest.mark.parametrize("typed", ["since:noon", "payload.password:x", "payload.a..b:x"])
def test_invalid_values_of_terms_are_refused(typed: str) -> None:
    with pytest.raises(ContractError):
        term_filters(parse_query(typed).terms)


_NAME = st.sampled_from(["status", "type", "subject", "kind", "payload.a.b", "meta.x"])
_VALUE = st.text(st.characters(exclude_characters='"', exclude_categories=["Cc", "Cs"]), min_size=1)


@given(st.dictionaries(_NAME, _VALUE))
def test_formatted_terms_parse_to_the_same_terms(terms: dict[str, str]) -> None:
    assert parse_query(format_terms(terms)).terms == terms


@given(st.text())
def test_any_text_parses_or_is_refused(typed: str) -> None:
    with suppress(ContractError):
        assert parse_query(format_terms(parse_query(typed).terms)).terms == parse_query(typed).terms
