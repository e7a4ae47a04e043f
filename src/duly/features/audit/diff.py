"""What differs between two versions of a record, said so that people understand it.

Versions are plain JSON values. Items of lists are told apart by an id where they have one, so that one that
was moved is not taken for two that were changed. Nothing secret and no personal data is shown, and there is
an end to all of it.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

from duly.core.redaction import SECRET_NAME, SECRET_VALUE, truncate
from duly.features.audit.diff_messages import MASK, Name, Words, is_veiled, shown

Kind = Literal["added", "removed", "changed", "moved"]
_MOST = 100
_NAMED = 5
_IDS = ("id", "uuid", "key", "code", "name")
_LABELS = ("name", "title", "label")


@dataclass(frozen=True, slots=True)
class Change:
    """One difference. Values are as they may be kept: without secrets, and cut."""

    path: str
    kind: Kind
    before: Any
    after: Any
    text: str


@dataclass(frozen=True, slots=True)
class Difference:
    """All differences, the first hundred of them one by one."""

    changes: tuple[Change, ...]
    more: int
    """How many there are beyond those."""
    summary: str

    def detail(self) -> dict[str, Any]:
        """As the audit trail keeps it."""
        told = {"summary": self.summary, "changes": [asdict(change) for change in self.changes]}
        return {**told, "more": self.more} if self.more else told


class _Found(NamedTuple):
    kind: Kind
    path: tuple[Name, ...]
    before: Any = None
    after: Any = None


def compare(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    *,
    locale: str = "en",
    names: Mapping[str, str] | None = None,
) -> Difference:
    """What was changed; `names` says how fields are called, by their name or by their path."""
    words = Words(locale, names or {})
    found = list(_values((), dict(before), dict(after)))
    told = [_told(one, words) for one in found[:_MOST]]
    if len(told) == 1:
        return Difference(tuple(told), 0, truncate(told[0].text))
    fields = list(dict.fromkeys(one.path[:1] for one in found))
    named = [words.name(path) for path in fields[:_NAMED]]
    summary = words.summary(len(found), named, len(fields) - len(named))
    return Difference(tuple(told), len(found) - len(told), truncate(summary))


def veil(*versions: Any, hide: Collection[str] = ()) -> list[Any]:
    """The versions without what is secret, by its name or its shape, and without the fields to be hidden.

    What was equal stays equal and what was not stays different, so that a change can still be told.
    """
    known: dict[str, int] = {}

    def inner(value: Any, name: str) -> Any:
        telling = value not in (None, "") and (name in hide or SECRET_NAME.search(name))
        if telling or (isinstance(value, str) and SECRET_VALUE.search(value)):
            return {MASK: known.setdefault(json.dumps(value, sort_keys=True, default=str), len(known))}
        if isinstance(value, Mapping):
            return {key: inner(part, str(key)) for key, part in value.items()}
        return [inner(part, name) for part in value] if isinstance(value, list | tuple) else value

    return [inner(version, "") for version in versions]


def _told(found: _Found, words: Words) -> Change:
    path = truncate(
        "".join(name.step[0] + words.redacted(name.step[1:]) for name in found.path).removeprefix(".")
    )
    if found.kind == "changed" and isinstance(found.before, str) and isinstance(found.after, str):
        before, after, text = words.texts(found.path, found.before, found.after)
        return Change(path, "changed", before, after, text)
    return Change(path, found.kind, shown(found.before), shown(found.after), words.said(*found))


def _values(path: tuple[Name, ...], before: Any, after: Any) -> Iterator[_Found]:
    veiled = is_veiled(before) or is_veiled(after)
    if isinstance(before, dict) and isinstance(after, dict) and not veiled:
        yield from _fields(path, before, after)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _lists(path, before, after)
    elif before != after or isinstance(before, bool) is not isinstance(after, bool):
        yield _Found("changed", path, before, after)


def _fields(path: tuple[Name, ...], before: dict[str, Any], after: dict[str, Any]) -> Iterator[_Found]:
    for key in dict.fromkeys((*before, *after)):
        here = (*path, Name(f".{key}", key))
        if key not in after:
            yield _Found("removed", here, before[key])
        elif key not in before:
            yield _Found("added", here, after=after[key])
        else:
            yield from _values(here, before[key], after[key])


def _lists(path: tuple[Name, ...], before: list[Any], after: list[Any]) -> Iterator[_Found]:
    identity = _identity(before, after)
    name = _by_label if identity else _by_place
    old, new = _keyed(before, identity), _keyed(after, identity)
    for key, (_, item) in old.items():
        if key not in new:
            yield _Found("removed", (*path, name(key, item)), item)
    for key, (_, item) in new.items():
        if key not in old:
            yield _Found("added", (*path, name(key, item)), after=item)
        else:
            yield from _values((*path, name(key, item)), old[key][1], item)
    both = [key for key in new if key in old]
    stayed = _longest_rise([old[key][0] for key in both])
    for key in both:
        if old[key][0] not in stayed:
            yield _Found("moved", (*path, name(key, new[key][1])), old[key][0] + 1, new[key][0] + 1)


def _keyed(items: list[Any], identity: Callable[[Any], Any] | None) -> dict[Any, tuple[int, Any]]:
    """The items with their places, by what tells them apart."""
    return {identity(item) if identity else place: (place, item) for place, item in enumerate(items)}


def _identity(before: list[Any], after: list[Any]) -> Callable[[Any], Any] | None:
    """What tells the items of a list apart: an id of theirs, or themselves; None if only their places do."""
    items = [*before, *after]
    if all(isinstance(item, dict) for item in items):
        names = (name for name in _IDS if all(_plain(item.get(name)) for item in items))
        by = next((name for name in names if _once(before, name) and _once(after, name)), None)
        return None if by is None else lambda item: item[by]
    if all(_plain(item) for item in items) and all(len(set(some)) == len(some) for some in (before, after)):
        return lambda item: item
    return None


def _plain(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _once(items: Sequence[dict[str, Any]], name: str) -> bool:
    return len({item[name] for item in items}) == len(items)


def _by_label(key: Any, item: Any) -> Name:
    labels = (item[name] for name in _LABELS if _plain(item.get(name))) if isinstance(item, dict) else ()
    return Name(f"[{truncate(str(key), 40)}]", next(iter(labels), key))


def _by_place(key: int, item: Any) -> Name:
    return Name(f"[{key}]", f"#{key + 1}")


def _longest_rise(places: Sequence[int]) -> set[int]:
    """The most of them that are still in order: the others were moved."""
    ends: list[int] = []
    before: dict[int, int | None] = {}
    for place in places:
        at = bisect_left(ends, place)
        before[place] = ends[at - 1] if at else None
        ends[at : at + 1] = [place]
    kept: set[int] = set()
    last = ends[-1] if ends else None
    while last is not None:
        kept.add(last)
        last = before[last]
    return kept
