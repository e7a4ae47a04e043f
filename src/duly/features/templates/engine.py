"""The words of a message: templates that anybody of an org may write, so none of them is trusted.

Jinja's sandbox is the second wall. The first is a list of what a template may consist of: text, values, `if`,
one `for`, comparisons and a few filters. It reads its payload and nothing else, and ends within its time.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from jinja2 import (
    ChainableUndefined,
    StrictUndefined,
    Template,
    TemplateError,
    Undefined,
    nodes,
    pass_context,
)
from jinja2.runtime import LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from duly.core.errors import ContractError
from duly.core.redaction import printable, redact
from duly.features.templates.filters import FILTERS, LONGEST_TEXT, each, joined, written
from duly.features.templates.lazy import Words
from duly.features.templates.syntax import LOOP, TESTS, problem

LONGEST_SUBJECT = 200
LONGEST_SOURCE = {"subject": 1_000, "body": 32 * 1024}
_CPU_SECONDS = 0.1
_MISSING = "have it in the payload, or ask `is defined`"
_FIX = "use text, values, if, one level of for, comparisons and the filters of the guide"


class _Environment(ImmutableSandboxedEnvironment):
    """Values have items and no attributes: nothing of Python can be reached from them."""

    def __init__(self, undefined: type[Undefined]) -> None:
        # Nothing is computed while it is compiled: there, nobody looks at the clock.
        super().__init__(
            undefined=undefined,
            finalize=pass_context(written),
            keep_trailing_newline=True,
            optimized=False,
        )
        self.globals.clear()
        self.filters = {**FILTERS, "_each": each, "_joined": joined}
        self.tests = {name: test for name, test in self.tests.items() if name in TESTS}

    def getattr(self, obj: Any, attribute: str) -> Any:
        """An item of a payload, or how far a loop is."""
        if isinstance(obj, LoopContext) and attribute in LOOP:
            return getattr(obj, attribute)
        return self.getitem(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """An item of an object or of a list."""
        if isinstance(obj, Undefined):
            return obj
        if isinstance(obj, dict) and isinstance(argument, str) and argument in obj:
            return obj[argument]
        if isinstance(obj, list) and type(argument) is int and -len(obj) <= argument < len(obj):
            return obj[argument]
        return self.undefined(hint=f"{argument!r} is not there")


class _Watched(NodeTransformer):
    """Has the steps that may take long, loops and `~`, go by way of those who look at the clock."""

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        node.iter = _through("_each", node.iter)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _through("_joined", nodes.List(node.nodes, lineno=node.lineno))


def _through(name: str, node: nodes.Node) -> nodes.Expr:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


_STRICT, _LENIENT = _Environment(StrictUndefined), _Environment(ChainableUndefined)


def check(words: Words) -> None:
    """Raise if a template is none, or has what it may not have."""
    for field, source in words._asdict().items():
        _compiled(field, source, False)


def render(words: Words, payload: Mapping[str, Any], locale: str, *, strict: bool = False) -> Words:
    """The words of one message: a subject of one line, and a body, both cut where they are too long.

    What is not in the payload is left out; with `strict`, it is an error that names it. May take a tenth of a
    second of a hostile template: on a thread, please.
    """
    hidden = {"_locale": locale, "_until": time.thread_time() + _CPU_SECONDS}
    subject, body = (
        _rendered(field, source, {**payload, **hidden}, strict) for field, source in words._asdict().items()
    )
    return Words(_cut(" ".join(subject.split()), LONGEST_SUBJECT), body)


def _rendered(field: str, source: str, values: dict[str, Any], strict: bool) -> str:
    template = _compiled(field, source, strict)
    text = ""
    try:
        for part in template.root_render_func(template.new_context(values)):
            text += part
            if len(text) > LONGEST_TEXT:
                break
    except (TemplateError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
        raise _refused(field, str(error), _MISSING if strict else None) from None
    except ContractError as error:
        raise _refused(field, error.message, error.fix) from None
    except Exception as error:  # whatever it is, it is this message's trouble and nobody else's
        raise _refused(field, f"it cannot be written: {type(error).__name__}") from None
    return _cut(printable(text), LONGEST_TEXT)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


@lru_cache(maxsize=256)
def _compiled(field: str, source: str, strict: bool) -> Template:
    environment = _STRICT if strict else _LENIENT
    tree = _Watched().visit(_parsed(field, source))
    tree.set_environment(environment)
    try:
        return Template.from_code(environment, environment.compile(tree), environment.globals)
    except Exception as error:
        raise _refused(field, str(error) or type(error).__name__) from None


def _parsed(field: str, source: str) -> nodes.Template:
    if len(source) > LONGEST_SOURCE[field]:
        raise _refused(field, f"longer than {LONGEST_SOURCE[field]} characters", "shorten it")
    try:
        tree = _STRICT.parse(source)
        wrong = problem(tree)
    except RecursionError:
        raise _refused(field, "too complicated", _FIX) from None
    except (TemplateError, ValueError) as error:
        raise _refused(field, str(error), _FIX) from None
    if wrong:
        raise _refused(field, wrong, _FIX)
    return tree


def _refused(field: str, message: str, fix: str | None = None) -> ContractError:
    return ContractError(redact(message), field=field, fix=fix or "try it with `preview`")
