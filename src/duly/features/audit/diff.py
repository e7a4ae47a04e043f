"""Compare two versions of a record, as texts that people understand.

Versions are plain JSON values. Items of lists are matched by an id where they have one, so that an item that
was moved is not reported as two changes. Secrets and personal data are masked, and the result is bounded.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

from duly.core.redaction import SECRET_NAME, SECRET_VALUE, truncate
from duly.features.audit.diff_messages import MASK, DiffMessages, PathStep, is_masked, storable

DifferenceKind = Literal["added", "removed", "changed", "moved"]
_MAX_DIFFERENCES = 100
_MAX_FIELDS_IN_SUMMARY = 5
_ID_FIELDS = ("id", "uuid", "key", "code", "name")
_LABEL_FIELDS = ("name", "title", "label")


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference. Its values are truncated, and without secrets."""

    path: str
    kind: DifferenceKind
    before: Any
    after: Any
    text: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """The first hundred differences, and a summary of all."""

    changes: tuple[Difference, ...]
    more: int
    """The number of further differences."""
    summary: str

    def detail(self) -> dict[str, Any]:
        """Return the detail of an audit entry."""
        detail = {"summary": self.summary, "changes": [asdict(change) for change in self.changes]}
        return {**detail, "more": self.more} if self.more else detail


class _RawDifference(NamedTuple):
    kind: DifferenceKind
    path: tuple[PathStep, ...]
    before: Any = None
    after: Any = None


def compare(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    *,
    locale: str = "en",
    names: Mapping[str, str] | None = None,
) -> Comparison:
    """Return the differences; `names` has labels of fields, by name or by path."""
    messages = DiffMessages(locale, names or {})
    raw = list(_compare_values((), dict(before), dict(after)))
    changes = tuple(_difference(one, messages) for one in raw[:_MAX_DIFFERENCES])
    if len(changes) == 1:
        return Comparison(changes, 0, truncate(changes[0].text))
    fields = list(dict.fromkeys(one.path[:1] for one in raw))
    labels = [messages.label(path) for path in fields[:_MAX_FIELDS_IN_SUMMARY]]
    summary = messages.summary(len(raw), labels, len(fields) - len(labels))
    return Comparison(changes, len(raw) - len(changes), truncate(summary))


def mask_secrets(*versions: Any, hide: Collection[str] = ()) -> list[Any]:
    """Return the versions with masks in place of hidden fields and secrets, known by name or by shape.

    Equal values get equal masks and different values different ones, so that a change is still detected.
    """
    masks: dict[str, int] = {}

    def mask(value: Any, name: str) -> Any:
        secret = value not in (None, "") and (name in hide or SECRET_NAME.search(name))
        if secret or (isinstance(value, str) and SECRET_VALUE.search(value)):
            return {MASK: masks.setdefault(json.dumps(value, sort_keys=True, default=str), len(masks))}
        if isinstance(value, Mapping):
            return {key: mask(part, str(key)) for key, part in value.items()}
        return [mask(part, name) for part in value] if isinstance(value, list | tuple) else value

    return [mask(version, "") for version in versions]


def _difference(raw: _RawDifference, messages: DiffMessages) -> Difference:
    path = truncate(
        "".join(step.text[0] + messages.redacted(step.text[1:]) for step in raw.path).removeprefix(".")
    )
    if raw.kind == "changed" and isinstance(raw.before, str) and isinstance(raw.after, str):
        before, after, text = messages.describe_texts(raw.path, raw.before, raw.after)
        return Difference(path, "changed", before, after, text)
    return Difference(path, raw.kind, storable(raw.before), storable(raw.after), messages.describe(*raw))


def _compare_values(path: tuple[PathStep, ...], before: Any, after: Any) -> Iterator[_RawDifference]:
    masked = is_masked(before) or is_masked(after)
    if isinstance(before, dict) and isinstance(after, dict) and not masked:
        yield from _compare_fields(path, before, after)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _compare_lists(path, before, after)
    elif before != after or isinstance(before, bool) is not isinstance(after, bool):
        yield _RawDifference("changed", path, before, after)


def _compare_fields(
    path: tuple[PathStep, ...], before: dict[str, Any], after: dict[str, Any]
) -> Iterator[_RawDifference]:
    for key in dict.fromkeys((*before, *after)):
        inner = (*path, PathStep(f".{key}", key))
        if key not in after:
            yield _RawDifference("removed", inner, before[key])
        elif key not in before:
            yield _RawDifference("added", inner, after=after[key])
        else:
            yield from _compare_values(inner, before[key], after[key])


def _compare_lists(
    path: tuple[PathStep, ...], before: list[Any], after: list[Any]
) -> Iterator[_RawDifference]:
    identity = _identity(before, after)
    step = _step_by_label if identity else _step_by_index
    old, new = _by_identity(before, identity), _by_identity(after, identity)
    for key, (_, item) in old.items():
        if key not in new:
            yield _RawDifference("removed", (*path, step(key, item)), item)
    for key, (_, item) in new.items():
        if key not in old:
            yield _RawDifference("added", (*path, step(key, item)), after=item)
        else:
            yield from _compare_values((*path, step(key, item)), old[key][1], item)
    common = [key for key in new if key in old]
    unmoved = _longest_increasing([old[key][0] for key in common])
    for key in common:
        if old[key][0] not in unmoved:
            inner = (*path, step(key, new[key][1]))
            yield _RawDifference("moved", inner, old[key][0] + 1, new[key][0] + 1)


def _by_identity(items: list[Any], identity: Callable[[Any], Any] | None) -> dict[Any, tuple[int, Any]]:
    """Return the items with their indexes, by identity."""
    return {identity(item) if identity else index: (index, item) for index, item in enumerate(items)}


def _identity(before: list[Any], after: list[Any]) -> Callable[[Any], Any] | None:
    """Return what identifies the items of a list: an id field, or their value; None if only the index."""
    items = [*before, *after]
    if all(isinstance(item, dict) for item in items):
        names = (name for name in _ID_FIELDS if all(_is_scalar(item.get(name)) for item in items))
        by = next((name for name in names if _is_unique(before, name) and _is_unique(after, name)), None)
        return None if by is None else lambda item: item[by]
    if all(map(_is_scalar, items)) and all(len(set(side)) == len(side) for side in (before, after)):
        return lambda item: item
    return None


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _is_unique(items: Sequence[dict[str, Any]], name: str) -> bool:
    return len({item[name] for item in items}) == len(items)


def _step_by_label(key: Any, item: Any) -> PathStep:
    fields = _LABEL_FIELDS if isinstance(item, dict) else ()
    label = next((item[name] for name in fields if _is_scalar(item.get(name))), key)
    return PathStep(f"[{truncate(str(key), 40)}]", label)


def _step_by_index(key: int, item: Any) -> PathStep:
    return PathStep(f"[{key}]", f"#{key + 1}")


def _longest_increasing(indexes: Sequence[int]) -> set[int]:
    """Return the longest increasing subsequence: the other items were moved."""
    ends: list[int] = []
    before: dict[int, int | None] = {}
    for index in indexes:
        at = bisect_left(ends, index)
        before[index] = ends[at - 1] if at else None
        ends[at : at + 1] = [index]
    longest: set[int] = set()
    last = ends[-1] if ends else None
    while last is not None:
        longest.add(last)
        last = before[last]
    return longest
