"""Render templates. They are written by members of orgs, and so are not trusted.

The first defence is the allowlist of `syntax.py`: text, values, `if`, one level of `for`, comparisons and
some filters. The second is Jinja's sandbox. A template reads its payload only, and has a time limit.
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
from duly.features.templates.filters import FILTERS, MAX_TEXT_LENGTH, concat, finalize, iterate
from duly.features.templates.models import MAX_SOURCE_LENGTH, MessageText
from duly.features.templates.syntax import LOOP_ATTRIBUTES, TESTS, find_problem

MAX_SUBJECT_LENGTH = 200
_MAX_CPU_SECONDS = 0.1
_MISSING_FIX = "add it to the payload, or test it with `is defined`"
_SYNTAX_FIX = "use text, values, if, one level of for, comparisons and the filters of the guide"


class _Environment(ImmutableSandboxedEnvironment):
    """Values have items and no attributes: templates cannot reach Python objects through them."""

    def __init__(self, undefined: type[Undefined]) -> None:
        # Compute nothing while compiling: there is no time limit there.
        super().__init__(
            undefined=undefined,
            finalize=pass_context(finalize),
            keep_trailing_newline=True,
            optimized=False,
        )
        self.globals.clear()
        self.filters = {**FILTERS, "_iterate": iterate, "_concat": concat}
        self.tests = {name: test for name, test in self.tests.items() if name in TESTS}

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return an item of the payload, or an attribute of the loop."""
        if isinstance(obj, LoopContext) and attribute in LOOP_ATTRIBUTES:
            return getattr(obj, attribute)
        return self.getitem(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Return an item of an object or of a list."""
        if isinstance(obj, Undefined):
            return obj
        if isinstance(obj, dict) and isinstance(argument, str) and argument in obj:
            return obj[argument]
        if isinstance(obj, list) and type(argument) is int and -len(obj) <= argument < len(obj):
            return obj[argument]
        return self.undefined(hint=f"{argument!r} is missing")


class _TimeLimiter(NodeTransformer):
    """Routes loops and `~`, which may take long, through filters that check the deadline."""

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        node.iter = _filtered("_iterate", node.iter)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _filtered("_concat", nodes.List(node.nodes, lineno=node.lineno))


def _filtered(name: str, node: nodes.Node) -> nodes.Expr:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


_STRICT, _LENIENT = _Environment(StrictUndefined), _Environment(ChainableUndefined)


def check(text: MessageText) -> None:
    """Raise if a template is invalid or contains what templates may not contain."""
    for field, source in text._asdict().items():
        _compile(field, source, False)


def render(
    text: MessageText, payload: Mapping[str, Any], locale: str, *, strict: bool = False
) -> MessageText:
    """Render a message: a subject of one line, and a body, both truncated to their maximum length.

    Values that the payload lacks are left empty; with `strict`, they are errors that name them. A hostile
    template may take a tenth of a second: call it on a thread.
    """
    hidden = {"_locale": locale, "_deadline": time.thread_time() + _MAX_CPU_SECONDS}
    subject, body = (
        _render(field, source, {**payload, **hidden}, strict) for field, source in text._asdict().items()
    )
    return MessageText(_truncate(" ".join(subject.split()), MAX_SUBJECT_LENGTH), body)


def _render(field: str, source: str, values: dict[str, Any], strict: bool) -> str:
    template = _compile(field, source, strict)
    text = ""
    try:
        for part in template.root_render_func(template.new_context(values)):
            text += part
            if len(text) > MAX_TEXT_LENGTH:
                break
    except (TemplateError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
        raise _refused(field, str(error), _MISSING_FIX if strict else None) from None
    except ContractError as error:
        raise _refused(field, error.message, error.fix) from None
    except Exception as error:  # it must fail this message only
        raise _refused(field, f"could not be rendered: {type(error).__name__}") from None
    return _truncate(printable(text), MAX_TEXT_LENGTH)


def _truncate(text: str, max_length: int) -> str:
    return text if len(text) <= max_length else text[: max_length - 1] + "…"


@lru_cache(maxsize=256)
def _compile(field: str, source: str, strict: bool) -> Template:
    environment = _STRICT if strict else _LENIENT
    tree = _TimeLimiter().visit(_parse(field, source))
    tree.set_environment(environment)
    try:
        return Template.from_code(environment, environment.compile(tree), environment.globals)
    except Exception as error:
        raise _refused(field, str(error) or type(error).__name__) from None


def _parse(field: str, source: str) -> nodes.Template:
    if len(source) > MAX_SOURCE_LENGTH[field]:
        raise _refused(field, f"longer than {MAX_SOURCE_LENGTH[field]} characters", "shorten it")
    try:
        tree = _STRICT.parse(source)
        problem = find_problem(tree)
    except RecursionError:
        raise _refused(field, "too complex", _SYNTAX_FIX) from None
    except (TemplateError, ValueError) as error:
        raise _refused(field, str(error), _SYNTAX_FIX) from None
    if problem:
        raise _refused(field, problem, _SYNTAX_FIX)
    return tree


def _refused(field: str, message: str, fix: str | None = None) -> ContractError:
    return ContractError(redact(message), field=field, fix=fix or "try it with `preview`")
