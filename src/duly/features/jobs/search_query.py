"""What people type to find jobs: `status:failed type:report.* payload.region:DE`, or one word alone.

Each term is a name and a value; a value with blanks stands in quotes. A word alone is the id of a job, what
it is about, or how its type begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from duly.core.errors import ContractError
from duly.core.payload import parse_payload_path

NAMES = {
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
"""The terms, and the filters that they are."""
PREFIXES = {"payload.": "payload", "meta.": "metadata"}
"""The terms whose names go on, and the filters that they are."""
_SAME = {filter_: name for name, filter_ in NAMES.items()}
_TOKEN = re.compile(
    r'(?P<name>[^\s":]+):(?P<value>"[^"]*"|[^\s"]*)(?=\s|$)|(?P<word>"[^"]*"|[^\s":]+)(?=\s|$)'
)
_MOMENTS = ("created_after", "created_before")


class Query(NamedTuple):
    """What was typed: values by the names of their terms, and perhaps a word."""

    terms: dict[str, str]
    word: str | None = None


def parse(text: str) -> Query:
    """Read what was typed; what cannot be read is named."""
    terms: dict[str, str] = {}
    word: str | None = None
    for found in _tokens(text):
        if found["word"] is not None:
            if word is not None:
                raise _wrong(f"{word!r} and {_bare(found['word'])!r} are two words", "put one of them away")
            word = _bare(found["word"])
            continue
        name, value = known(found["name"]), _bare(found["value"])
        if not value:
            raise _wrong(f"nothing stands after {name}:", f"write {name}:VALUE")
        if name in terms:
            raise _wrong(f"{name} stands twice", "say it once")
        terms[name] = value
    return Query(terms, word or None)


def write(terms: Mapping[str, str]) -> str:
    """The same as a text that reads so."""
    return " ".join(f"{name}:{_quoted(value)}" for name, value in terms.items())


def known(name: str) -> str:
    """The name of a term, also from the filter that it is; any other raises."""
    name = _SAME.get(name, name)
    if name in NAMES or any(name.startswith(one) and name != one for one in PREFIXES):
        return name
    raise _wrong(
        f"{name[:40]!r} is no filter",
        f"one of {', '.join([*NAMES, 'payload.PATH', 'meta.NAME'])}; or put the word in quotes",
    )


def filters(terms: Mapping[str, str]) -> dict[str, Any]:
    """The terms as the filters of a list of jobs."""
    made: dict[str, Any] = {}
    for name, value in terms.items():
        prefix = next((one for one in PREFIXES if name.startswith(one)), None)
        if prefix is not None:
            made.setdefault(PREFIXES[prefix], {})[name.removeprefix(prefix)] = value
        else:
            filter_ = NAMES[known(name)]
            made[filter_] = _moment(name, value) if filter_ in _MOMENTS else value
    for path in made.get("payload", {}):
        parse_payload_path(path)
    return made


def _tokens(text: str) -> Iterable[re.Match[str]]:
    at, text = 0, text.strip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            rest = text[at:].split()[0]
            raise _wrong(f"{rest[:40]!r} cannot be read", 'write name:value, with quotes as in subject:"a b"')
        yield found
        at = found.end() + len(text[found.end() :]) - len(text[found.end() :].lstrip())


def _bare(text: str) -> str:
    return text[1:-1] if text.startswith('"') else text


def _quoted(value: str) -> str:
    plain = re.fullmatch(r'[^\s"]+', value)
    return value if plain else '"' + value.replace('"', "") + '"'


def _moment(name: str, text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
        return found if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise _wrong(f"{text[:40]!r} is no time", f"write {name}:2026-11-16T12:00:00Z") from None


def _wrong(message: str, fix: str) -> ContractError:
    return ContractError(message, field="search", fix=fix)
