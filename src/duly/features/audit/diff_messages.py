"""The words for differences, in English and in German: names, values, passages of texts."""

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
_VALUE, _PASSAGE = 80, 160
_AROUND, _PASSAGES, _FIRST = 3, 3, 12
# Comparing takes the cube of the words in bad cases: so many of one text, and so many of all texts together.
_COMPARED, _COMPARED_IN_ALL = 200, 2_000
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?")
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


class Name(NamedTuple):
    """A step of a path: as it is written, and what it is called."""

    step: str
    label: Any


def is_veiled(value: Any) -> bool:
    """Whether it stands for something that must not be seen."""
    return isinstance(value, dict) and list(value) == [MASK]


def shown(value: Any) -> Any:
    """A value as it may be kept."""
    if is_veiled(value):
        return MASK
    if isinstance(value, dict | list):
        return redact(_json(value), MAX_SHORT_TEXT_LENGTH)
    return redact(value, MAX_SHORT_TEXT_LENGTH) if isinstance(value, str) else value


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return re.sub(r'\{"\[redacted\]": \d+\}', MASK, text)


class Words:
    """How differences are said in one language."""

    def __init__(self, locale: str, names: Mapping[str, str]) -> None:
        self._german = locale.lower().startswith("de")
        self._say = _GERMAN if self._german else _ENGLISH
        self._names = names
        self._compared = 0
        self.redacted = cache(redact)
        """Names come again with every change below them."""

    def name(self, path: Sequence[Name]) -> str:
        """What is meant, for people."""
        said: list[str] = []
        written = ""
        for step, label in path:
            if step.startswith("["):
                said.append(self._label(label))
                continue
            written = f"{written}.{label}".removeprefix(".")
            plain = self.redacted(str(label).replace("_", " "), _VALUE)
            said.append(self._names.get(written) or self._names.get(str(label)) or plain)
        return truncate(" / ".join(said), _PASSAGE)

    def _label(self, label: Any) -> str:
        plain = isinstance(label, int) or label.startswith("#")
        return str(label) if plain else self._quoted(self.redacted(label, _VALUE))

    def said(self, kind: str, path: Sequence[Name], before: Any, after: Any) -> str:
        """One difference of plain values."""
        if is_veiled(before) and is_veiled(after):
            return self._say["hidden"].format(name=self.name(path))
        said = {"before": self.value(before), "after": self.value(after)}
        if kind != "changed" and path[-1].step.startswith("["):
            item = self._label(path[-1].label)
            said = {"before": item, "after": item} | ({"item": item, **said} if kind == "moved" else {})
            path = path[:-1]
        return truncate(self._say[kind].format(name=self.name(path), **said), 2 * MAX_SHORT_TEXT_LENGTH)

    def texts(self, path: Sequence[Name], before: str, after: str) -> tuple[str, str, str]:
        """Short ones as they are; of long ones the passages that differ, with a few words around."""
        old, new = _clean(before), _clean(after)
        if old == new:
            return MASK, MASK, self._say["hidden"].format(name=self.name(path))
        if max(len(old), len(new)) <= _VALUE and "\n" not in old + new:
            return old, new, self.said("changed", path, old, new)
        part = _Part.of(old.split(), new.split())
        pairs = self._passages(part)
        if not pairs:
            counts = {"before": self.value(len(before.split())), "after": self.value(len(after.split()))}
            began, begins = part.beginning()
            said = self._say["longer"].format(name=self.name(path), **counts)
            return began, begins, f"{said}: {self._quoted(began)} → {self._quoted(begins)}"
        told = [f"{self._quoted(was)} → {self._quoted(now)}" for was, now in pairs[:_PASSAGES]]
        if len(pairs) > _PASSAGES:
            told.append(self._say["more"].format(n=len(pairs) - _PASSAGES))
        kept = [truncate(" / ".join(side[:_PASSAGES])) for side in zip(*pairs, strict=True)]
        return kept[0], kept[1], f"{self.name(path)}: {'; '.join(told)}"

    def _passages(self, part: _Part) -> list[tuple[str, str]]:
        """What differs; nothing if that is too much to compare, or only space."""
        if part.size > min(_COMPARED, _COMPARED_IN_ALL - self._compared):
            return []
        self._compared += part.size
        return part.passages()

    def value(self, value: Any) -> str:
        """A value as it is written in this language."""
        if value is None:
            return self._say["nothing"]
        if isinstance(value, bool):
            return self._say["yes" if value else "no"]
        if isinstance(value, int | float):
            return self._number(value)
        if isinstance(value, str):
            return self._moment(value) or self._quoted(redact(value, _VALUE))
        return truncate(str(shown(value)), _VALUE)

    def _number(self, value: float) -> str:
        text = f"{value:,}"
        return text.translate({44: ".", 46: ","}) if self._german else text

    def _moment(self, text: str) -> str | None:
        try:
            if _DATE.fullmatch(text):
                return self._day(date.fromisoformat(text))
            if _MOMENT.fullmatch(text):
                at = datetime.fromisoformat(text)
                zone = at.isoformat()[-6:].replace("+00:00", "UTC") if at.tzinfo else ""
                return f"{self._day(at)}, {at:%H:%M} {zone}".rstrip()
        except ValueError:
            pass  # only looks like one
        return None

    def _day(self, day: date) -> str:
        if self._german:
            return f"{day:%d.%m.%Y}"
        return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"

    def _quoted(self, text: str) -> str:
        return self._say["quotes"].format(text)

    def summary(self, count: int, fields: Sequence[str], others: int) -> str:
        """All of it in a line."""
        if not count:
            return self._say["none"]
        more = [self._say["more"].format(n=others)] if others else []
        return self._say["summary"].format(n=count, names=", ".join([*fields, *more]))


def _clean(text: str) -> str:
    """The text without secrets and personal data, line by line: only so much of one text would be read."""
    return "\n".join(redact(line, len(line) + MAX_SHORT_TEXT_LENGTH) for line in text.split("\n"))


class _Part(NamedTuple):
    """What is left of two texts without the words that both begin and end with, but for a few."""

    old: list[str]
    new: list[str]
    start: int
    end: int

    @classmethod
    def of(cls, old: list[str], new: list[str]) -> Self:
        start = _common(old, new)
        end = _common(old[start:][::-1], new[start:][::-1])
        return cls(old, new, max(0, start - _AROUND), max(0, end - _AROUND))

    @property
    def size(self) -> int:
        return max(len(self.old), len(self.new)) - self.start - self.end

    def passages(self) -> list[tuple[str, str]]:
        a, b = (words[self.start : len(words) - self.end] for words in (self.old, self.new))
        groups = SequenceMatcher(None, a, b, autojunk=False).get_grouped_opcodes(_AROUND)
        return [
            (
                _passage(self.old, self.start + some[0][1], self.start + some[-1][2]),
                _passage(self.new, self.start + some[0][3], self.start + some[-1][4]),
            )
            for some in groups
        ]

    def beginning(self) -> tuple[str, str]:
        end = self.start + _FIRST
        return _passage(self.old, self.start, end), _passage(self.new, self.start, end)


def _passage(words: list[str], start: int, end: int) -> str:
    before, behind = "… " if start else "", " …" if end < len(words) else ""
    return f"{before}{truncate(' '.join(words[start:end]), _PASSAGE)}{behind}"


def _common(old: list[str], new: list[str]) -> int:
    """How many words both begin with."""
    pairs = zip(old, new, strict=False)
    return next((n for n, (was, now) in enumerate(pairs) if was != now), min(len(old), len(new)))
