"""Parse search queries for jobs: `status:failed type:report.* payload.region:DE`, or one word.

A term is a name and a value; a value with spaces is quoted. A word alone is the id of a job, a subject, or
the prefix of a job type.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from duly.core.errors import ContractError
from duly.core.payload import parse_payload_path

FILTERS_BY_TERM = {
    "status": "status",
    "outcome": "outcome",
    "type": "job_type",
    "queue": "queue",
    "subject": "subject_id",
    "freshness": "freshness",
    "error": "error_code",
    "kind": "fingerprint",
    "since": "created_after",
    "until": "created_before",
}
_FILTERS_BY_PREFIX = {"payload.": "payload", "meta.": "metadata"}
_TERMS_BY_FILTER = {filter_: term for term, filter_ in FILTERS_BY_TERM.items()}
_TOKEN = re.compile(
    r'(?P<name>[^\s":]+):(?P<value>"[^"]*"|[^\s"]*)(?=\s|$)|(?P<word>"[^"]*"|[^\s":]+)(?=\s|$)'
)


class SearchQuery(NamedTuple):
    """A parsed query: values by term, and the word, if there is one."""

    terms: dict[str, str]
    word: str | None = None


def parse_query(text: str) -> SearchQuery:
    """Parse a query; raise for the first part that is invalid."""
    terms: dict[str, str] = {}
    word: str | None = None
    for token in _tokens(text):
        if token["word"] is not None:
            if word is not None:
                raise _invalid(
                    f"{word!r} and {_unquoted(token['word'])!r} are two words",
                    "use one word, or quote both together",
                )
            word = _unquoted(token["word"])
            continue
        name, value = term_name(token["name"]), _unquoted(token["value"])
        if not value:
            raise _invalid(f"{name}: has no value", f"write {name}:VALUE")
        if name in terms:
            raise _invalid(f"{name} is given twice", "use it once")
        terms[name] = value
    return SearchQuery(terms, word or None)


def format_terms(terms: Mapping[str, str]) -> str:
    """Return terms as the text of a query."""
    return " ".join(f"{name}:{_quoted(value)}" for name, value in terms.items())


def is_term(name: str) -> bool:
    """Return whether a name is that of a term, or of the filter that a term sets."""
    return name in FILTERS_BY_TERM or name in _TERMS_BY_FILTER or _prefix(name) is not None


def term_name(name: str) -> str:
    """Return the name of a term, also from the filter that it sets; raise for any other name."""
    if not is_term(name):
        raise _invalid(
            f"unknown filter {name[:40]!r}",
            f"use one of {', '.join([*FILTERS_BY_TERM, 'payload.PATH', 'meta.NAME'])}; or quote the word",
        )
    return name if name in FILTERS_BY_TERM else _TERMS_BY_FILTER.get(name, name)


def term_filters(terms: Mapping[str, str]) -> dict[str, Any]:
    """Return terms as the filters of a job list."""
    filters: dict[str, Any] = {}
    for name, value in terms.items():
        prefix = _prefix(name)
        if prefix is not None:
            filters.setdefault(_FILTERS_BY_PREFIX[prefix], {})[name.removeprefix(prefix)] = value
        else:
            filter_ = FILTERS_BY_TERM[term_name(name)]
            is_time = filter_ in ("created_after", "created_before")
            filters[filter_] = _parse_time(name, value) if is_time else value
    for path in filters.get("payload", {}):
        parse_payload_path(path)
    return filters


def _prefix(name: str) -> str | None:
    return next((one for one in _FILTERS_BY_PREFIX if name.startswith(one) and name != one), None)


def _tokens(text: str) -> Iterable[re.Match[str]]:
    at, text = 0, text.strip()
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            rest = text[at:].split()[0]
            raise _invalid(f"invalid term {rest[:40]!r}", 'write name:value, with quotes as in subject:"a b"')
        yield token
        at = token.end() + len(text[token.end() :]) - len(text[token.end() :].lstrip())


def _unquoted(text: str) -> str:
    return text[1:-1] if text.startswith('"') else text


def _quoted(value: str) -> str:
    is_plain = re.fullmatch(r'[^\s"]+', value)
    return value if is_plain else '"' + value.replace('"', "") + '"'


def _parse_time(name: str, text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
        return time if time.tzinfo else time.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise _invalid(f"{text[:40]!r} is not a time", f"write {name}:2026-11-16T12:00:00Z") from None


def _invalid(message: str, fix: str) -> ContractError:
    return ContractError(message, field="search", fix=fix)
