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


class MetricQuery(NamedTuple):
    """A metric that an expression queries, and the labels that it must have."""

    metric: str
    labels: frozenset[str]


class InvalidExpression(ValueError):
    """Not PromQL, or syntax that this parser does not support."""


def parse_expression(expression: str) -> list[MetricQuery]:
    """Return the metrics that an expression queries."""
    parser = _Parser(_tokens(expression))
    result = parser.expression()
    if parser.next is not None:
        raise InvalidExpression(f"{parser.next!r} is left over in {expression!r}")
    return result


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens, position = [], 0
    text = text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            raise InvalidExpression(f"{text[position:]!r}")
        tokens.append((match.lastgroup, match[match.lastgroup]))
        position = match.end()
    return tokens


class _Parser:
    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self._tokens = tokens

    @property
    def next(self) -> str | None:
        return self._tokens[0][1] if self._tokens else None

    def take(self, *expected: str, kind: str | None = None) -> str:
        if not self._tokens:
            raise InvalidExpression("unexpected end")
        token_kind, text = self._tokens.pop(0)
        if (expected and text not in expected) or (kind and token_kind != kind):
            raise InvalidExpression(f"{text!r} instead of {expected or kind}")
        return text

    def expression(self) -> list[MetricQuery]:
        result = self.part()
        while self.next in _OPERATORS:
            self.take()
            if self.next == "bool":
                self.take()
            more = (
                frozenset(self.labels()) if self.next in ("on", "ignoring") and self.take() else frozenset()
            )
            right = self.part()
            result = [MetricQuery(query.metric, query.labels | more) for query in (*result, *right)]
        return result

    def part(self) -> list[MetricQuery]:
        if self.next == "-":
            self.take()
        if self.next == "(":
            self.take("(")
            result = self.expression()
            self.take(")")
            return result
        if self._tokens and self._tokens[0][0] in ("number", "string"):
            self.take()
            return []
        name = self.take(kind="name")
        if name in _AGGREGATIONS:
            return self.aggregation()
        if self.next == "(":
            if name not in _FUNCTIONS:
                raise InvalidExpression(f"{name} is not a supported function")
            return self.arguments()
        return [self.selector(name)]

    def aggregation(self) -> list[MetricQuery]:
        by = self.grouping()
        inner = self.arguments()
        by |= self.grouping()
        return [MetricQuery(query.metric, query.labels | by) for query in inner]

    def grouping(self) -> frozenset[str]:
        if self.next not in ("by", "without"):
            return frozenset()
        self.take()
        return frozenset(self.labels())

    def labels(self) -> list[str]:
        result: list[str] = []
        self.take("(")
        while self.next != ")":
            result.append(self.take(kind="name"))
            if self.next == ",":
                self.take()
        self.take(")")
        return result

    def arguments(self) -> list[MetricQuery]:
        result: list[MetricQuery] = []
        self.take("(")
        while self.next != ")":
            result += self.expression()
            if self.next == ",":
                self.take()
        self.take(")")
        return result

    def selector(self, metric: str) -> MetricQuery:
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
        return MetricQuery(metric, frozenset(labels))
