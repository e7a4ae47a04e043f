"""A parser of the PromQL that our rules and dashboards use: returns the metrics and labels they need.

Unknown syntax is an error: an expression that cannot be parsed here is not checked.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>\d+(?:\.\d+)?(?![\w.]))
      | (?P<duration>(?:\d+(?:ms|[smhdwy]))+)
      | (?P<name>[A-Za-z_:][A-Za-z0-9_:]*)
      | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<sign>=~|!~|!=|==|>=|<=|[-+*/%^<>=(){}\[\],])
    )""",
    re.VERBOSE,
)
_AGGREGATIONS = {"sum", "min", "max", "avg", "count", "topk", "bottomk"}
_FUNCTIONS = {"rate", "increase", "histogram_quantile", "abs", "clamp_min", "time", "absent"}
_COMPARISONS = {"==", "!=", ">", "<", ">=", "<="}
_OPERATORS = {"+", "-", "*", "/", "%", "^", "and", "or", "unless"} | _COMPARISONS
_MATCHES = {"=", "!=", "=~", "!~"}


class Needs(NamedTuple):
    """A metric, and the labels that it must have."""

    metric: str
    labels: frozenset[str]


class Unreadable(ValueError):
    """Not PromQL, or more of it than is known here."""


def read(expression: str) -> list[Needs]:
    """What an expression needs."""
    reader = _Reader(_tokens(expression))
    found = reader.expression()
    if reader.next is not None:
        raise Unreadable(f"{reader.next!r} is left of {expression!r}")
    return found


def _tokens(text: str) -> list[tuple[str, str]]:
    found, place = [], 0
    text = text.rstrip()
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None or match.lastgroup is None:
            raise Unreadable(f"{text[place:]!r}")
        found.append((match.lastgroup, match[match.lastgroup]))
        place = match.end()
    return found


class _Reader:
    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self._tokens = tokens

    @property
    def next(self) -> str | None:
        return self._tokens[0][1] if self._tokens else None

    def take(self, *wanted: str, kind: str | None = None) -> str:
        if not self._tokens:
            raise Unreadable("it ends too soon")
        found, text = self._tokens.pop(0)
        if (wanted and text not in wanted) or (kind and found != kind):
            raise Unreadable(f"{text!r} instead of {wanted or kind}")
        return text

    def expression(self) -> list[Needs]:
        found = self.part()
        while self.next in _OPERATORS:
            self.take()
            if self.next == "bool":
                self.take()
            more = (
                frozenset(self.labels()) if self.next in ("on", "ignoring") and self.take() else frozenset()
            )
            right = self.part()
            found = [Needs(need.metric, need.labels | more) for need in (*found, *right)]
        return found

    def part(self) -> list[Needs]:
        if self.next == "-":
            self.take()
        if self.next == "(":
            self.take("(")
            found = self.expression()
            self.take(")")
            return found
        if self._tokens and self._tokens[0][0] in ("number", "string"):
            self.take()
            return []
        name = self.take(kind="name")
        if name in _AGGREGATIONS:
            return self.aggregation()
        if self.next == "(":
            if name not in _FUNCTIONS:
                raise Unreadable(f"{name} is no function that is known here")
            return self.arguments()
        return [self.selector(name)]

    def aggregation(self) -> list[Needs]:
        by = self.grouping()
        inner = self.arguments()
        by |= self.grouping()
        return [Needs(need.metric, need.labels | by) for need in inner]

    def grouping(self) -> frozenset[str]:
        if self.next not in ("by", "without"):
            return frozenset()
        self.take()
        return frozenset(self.labels())

    def labels(self) -> list[str]:
        found: list[str] = []
        self.take("(")
        while self.next != ")":
            found.append(self.take(kind="name"))
            if self.next == ",":
                self.take()
        self.take(")")
        return found

    def arguments(self) -> list[Needs]:
        found: list[Needs] = []
        self.take("(")
        while self.next != ")":
            found += self.expression()
            if self.next == ",":
                self.take()
        self.take(")")
        return found

    def selector(self, metric: str) -> Needs:
        labels: set[str] = set()
        if self.next == "{":
            self.take("{")
            while self.next != "}":
                labels.add(self.take(kind="name"))
                self.take(*_MATCHES)
                self.take(kind="string")
                if self.next == ",":
                    self.take()
            self.take("}")
        if self.next == "[":
            self.take("[")
            self.take(kind="duration")
            self.take("]")
        return Needs(metric, frozenset(labels))
