"""Messages for the differences of two versions, in English and German: labels, values, text passages."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from difflib import SequenceMatcher
from functools import cache
from typing import Any, NamedTuple, Self

from duly.core.redaction import MAX_SHORT_TEXT_LENGTH, redact, truncate

MASK = "[redacted]"
_MAX_VALUE_LENGTH, _MAX_PASSAGE_LENGTH = 80, 160
_CONTEXT_WORDS, _MAX_PASSAGES, _FIRST_WORDS = 3, 3, 12
# In bad cases a comparison takes the cube of the number of words.
_MAX_COMPARED_WORDS, _MAX_COMPARED_WORDS_OVERALL = 200, 2_000
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_ENGLISH = {
    "added": "{name}: added {after}",
    "removed": "{name}: removed {before}",
    "changed": "{name}: {before} → {after}",
    "moved": "{name}: {item} moved from place {before} to {after}",
    "hidden": "{name}: changed (not shown)",
    "longer": "{name}: text changed, {before} → {after} words",
    "more": "and {n} more",
    "none": "nothing changed",
    "summary": "{n} changes: {names}",
    "quotes": "“{}”",
    "yes": "yes",
    "no": "no",
    "nothing": "(empty)",
}
_GERMAN = {
    "added": "{name}: {after} hinzugefügt",
    "removed": "{name}: {before} entfernt",
    "changed": "{name}: {before} → {after}",
    "moved": "{name}: {item} von Stelle {before} nach Stelle {after} verschoben",
    "hidden": "{name}: geändert (nicht gezeigt)",
    "longer": "{name}: Text geändert, {before} → {after} Wörter",
    "more": "und {n} weitere",
    "none": "nichts geändert",
    "summary": "{n} Änderungen: {names}",
    "quotes": "„{}“",
    "yes": "ja",
    "no": "nein",
    "nothing": "(leer)",
}


class PathStep(NamedTuple):
    """A step of a path: its text, such as `.price` or `[7]`, and its label."""

    text: str
    label: Any

    @property
    def is_item(self) -> bool:
        """Whether the step leads to an item of a list."""
        return self.text.startswith("[")


def is_masked(value: Any) -> bool:
    """Return whether a value is the mask of a secret."""
    return isinstance(value, dict) and list(value) == [MASK]


def storable(value: Any) -> Any:
    """Return a value as the audit trail stores it: redacted and truncated."""
    if is_masked(value):
        return MASK
    if isinstance(value, dict | list):
        text = json.dumps(value, ensure_ascii=False, default=str)
        return redact(re.sub(r'\{"\[redacted\]": \d+\}', MASK, text), MAX_SHORT_TEXT_LENGTH)
    return redact(value, MAX_SHORT_TEXT_LENGTH) if isinstance(value, str) else value


class DiffMessages:
    """Describes differences in one language."""

    def __init__(self, locale: str, names: Mapping[str, str]) -> None:
        self._german = locale.lower().startswith("de")
        self._messages = _GERMAN if self._german else _ENGLISH
        self._names = names
        self._compared_words = 0
        self.redacted = cache(redact)
        """Cached, because names repeat in every change below them."""

    def label(self, path: Sequence[PathStep]) -> str:
        """Return the label of a field."""
        labels: list[str] = []
        fields = ""
        for step in path:
            if step.is_item:
                labels.append(self._item_label(step.label))
                continue
            fields = f"{fields}.{step.label}".removeprefix(".")
            default = self.redacted(str(step.label).replace("_", " "), _MAX_VALUE_LENGTH)
            labels.append(self._names.get(fields) or self._names.get(str(step.label)) or default)
        return truncate(" / ".join(labels), _MAX_PASSAGE_LENGTH)

    def _item_label(self, label: Any) -> str:
        plain = isinstance(label, int) or label.startswith("#")
        return str(label) if plain else self._quoted(self.redacted(label, _MAX_VALUE_LENGTH))

    def describe(self, kind: str, path: Sequence[PathStep], before: Any, after: Any) -> str:
        """Describe a difference of plain values."""
        if is_masked(before) and is_masked(after):
            return self._messages["hidden"].format(name=self.label(path))
        values = {"before": self.value(before), "after": self.value(after)}
        if kind != "changed" and path[-1].is_item:
            item = self._item_label(path[-1].label)
            values = {**values, "item": item} if kind == "moved" else {"before": item, "after": item}
            path = path[:-1]
        text = self._messages[kind].format(name=self.label(path), **values)
        return truncate(text, 2 * MAX_SHORT_TEXT_LENGTH)

    def describe_texts(self, path: Sequence[PathStep], before: str, after: str) -> tuple[str, str, str]:
        """Return two texts as they may be stored, and their difference.

        Of long texts, these are the passages that differ, with a few words of context.
        """
        old, new = _redact_text(before), _redact_text(after)
        if old == new:
            return MASK, MASK, self._messages["hidden"].format(name=self.label(path))
        if max(len(old), len(new)) <= _MAX_VALUE_LENGTH and "\n" not in old + new:
            return old, new, self.describe("changed", path, old, new)
        window = _Window.of(old.split(), new.split())
        passages = self._passages(window)
        if not passages:
            counts = {"before": self.value(len(before.split())), "after": self.value(len(after.split()))}
            old_start, new_start = window.first_words()
            text = self._messages["longer"].format(name=self.label(path), **counts)
            return old_start, new_start, f"{text}: {self._arrow(old_start, new_start)}"
        texts = [self._arrow(*passage) for passage in passages[:_MAX_PASSAGES]]
        if len(passages) > _MAX_PASSAGES:
            texts.append(self._messages["more"].format(n=len(passages) - _MAX_PASSAGES))
        sides = [truncate(" / ".join(side[:_MAX_PASSAGES])) for side in zip(*passages, strict=True)]
        return sides[0], sides[1], f"{self.label(path)}: {'; '.join(texts)}"

    def _passages(self, window: _Window) -> list[tuple[str, str]]:
        """Return the passages that differ; none if there is too much to compare, or only space differs."""
        if window.size > min(_MAX_COMPARED_WORDS, _MAX_COMPARED_WORDS_OVERALL - self._compared_words):
            return []
        self._compared_words += window.size
        return window.passages()

    def value(self, value: Any) -> str:
        """Return a value as it is written in this language."""
        if value is None:
            return self._messages["nothing"]
        if isinstance(value, bool):
            return self._messages["yes" if value else "no"]
        if isinstance(value, int | float):
            text = f"{value:,}"
            return text.translate({44: ".", 46: ","}) if self._german else text
        if isinstance(value, str):
            return self._time(value) or self._quoted(redact(value, _MAX_VALUE_LENGTH))
        return truncate(str(storable(value)), _MAX_VALUE_LENGTH)

    def _time(self, text: str) -> str | None:
        try:
            if _DATE.fullmatch(text):
                return self._date(date.fromisoformat(text))
            if _TIME.fullmatch(text):
                at = datetime.fromisoformat(text)
                zone = at.isoformat()[-6:].replace("+00:00", "UTC") if at.tzinfo else ""
                return f"{self._date(at)}, {at:%H:%M} {zone}".rstrip()
        except ValueError:
            pass  # only looks like a date
        return None

    def _date(self, day: date) -> str:
        if self._german:
            return f"{day:%d.%m.%Y}"
        return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"

    def _quoted(self, text: str) -> str:
        return self._messages["quotes"].format(text)

    def _arrow(self, old: str, new: str) -> str:
        return f"{self._quoted(old)} → {self._quoted(new)}"

    def summary(self, count: int, fields: Sequence[str], others: int) -> str:
        """Return all changes as one line."""
        if not count:
            return self._messages["none"]
        more = [self._messages["more"].format(n=others)] if others else []
        return self._messages["summary"].format(n=count, names=", ".join([*fields, *more]))


def _redact_text(text: str) -> str:
    """Return a text without secrets and personal data, line by line, because `redact` bounds its input."""
    return "\n".join(redact(line, len(line) + MAX_SHORT_TEXT_LENGTH) for line in text.split("\n"))


class _Window(NamedTuple):
    """Two texts without their common beginning and end, except for a few words of context."""

    old: list[str]
    new: list[str]
    start: int
    end: int

    @classmethod
    def of(cls, old: list[str], new: list[str]) -> Self:
        start = _common_prefix(old, new)
        end = _common_prefix(old[start:][::-1], new[start:][::-1])
        return cls(old, new, max(0, start - _CONTEXT_WORDS), max(0, end - _CONTEXT_WORDS))

    @property
    def size(self) -> int:
        return max(len(self.old), len(self.new)) - self.start - self.end

    def passages(self) -> list[tuple[str, str]]:
        a, b = (words[self.start : len(words) - self.end] for words in (self.old, self.new))
        groups = SequenceMatcher(None, a, b, autojunk=False).get_grouped_opcodes(_CONTEXT_WORDS)
        return [
            (
                _passage(self.old, self.start + group[0][1], self.start + group[-1][2]),
                _passage(self.new, self.start + group[0][3], self.start + group[-1][4]),
            )
            for group in groups
        ]

    def first_words(self) -> tuple[str, str]:
        end = self.start + _FIRST_WORDS
        return _passage(self.old, self.start, end), _passage(self.new, self.start, end)


def _passage(words: list[str], start: int, end: int) -> str:
    before, after = "… " if start else "", " …" if end < len(words) else ""
    return f"{before}{truncate(' '.join(words[start:end]), _MAX_PASSAGE_LENGTH)}{after}"


def _common_prefix(old: list[str], new: list[str]) -> int:
    """Return the number of words with which both begin."""
    pairs = zip(old, new, strict=False)
    return next((n for n, (left, right) in enumerate(pairs) if left != right), min(len(old), len(new)))
