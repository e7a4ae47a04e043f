"""The allowlist of template syntax: a node that is not listed is refused."""

from __future__ import annotations

from collections.abc import Iterator

from jinja2 import nodes

from duly.features.templates.filters import FILTERS

LOOP_ATTRIBUTES = frozenset({"index", "index0", "first", "last", "length"})
"""The attributes of `loop` that a template may read."""
TESTS = frozenset({"defined", "undefined", "none", "string", "number", "boolean", "true", "false"})
_MAX_NODES, _MAX_DEPTH = 2_000, 40
_MAX_OPERANDS = 100
_MAX_NUMBER = 10**15
_ALLOWED = (
    *(
        nodes.Template,
        nodes.Output,
        nodes.TemplateData,
        nodes.Name,
        nodes.Const,
        nodes.Getattr,
        nodes.Getitem,
    ),
    *(nodes.If, nodes.For, nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.Concat),
    *(nodes.CondExpr, nodes.Filter, nodes.Test, nodes.Keyword, nodes.List, nodes.Tuple, nodes.Neg),
)


def find_problem(tree: nodes.Template) -> str | None:
    """Return the first problem of a template with its line; None if it is valid."""
    for number, (node, depth) in enumerate(_walk(tree, 0)):
        if number >= _MAX_NODES or depth > _MAX_DEPTH:
            return "too complex"
        if problem := _node_problem(node):
            return f"line {node.lineno}: {problem}"
    return None


def _walk(node: nodes.Node, depth: int) -> Iterator[tuple[nodes.Node, int]]:
    yield node, depth
    if depth > _MAX_DEPTH or _reads_loop(node):
        return
    for child in node.iter_child_nodes():
        yield from _walk(child, depth + 1)


def _reads_loop(node: nodes.Node) -> bool:
    return (
        isinstance(node, nodes.Getattr)
        and node.attr in LOOP_ATTRIBUTES
        and isinstance(node.node, nodes.Name)
        and node.node.name == "loop"
    )


def _node_problem(node: nodes.Node) -> str | None:
    match node:
        case nodes.Name():
            hidden = node.name.startswith("_") or node.name in ("loop", "self")
            return f"{node.name!r} cannot be read" if hidden else None
        case nodes.Getattr():
            return f"{node.attr!r} cannot be read" if node.attr.startswith("_") else None
        case nodes.Const():
            return None if _is_plain(node.value) else "a number is too large"
        case nodes.Concat():
            return None if len(node.nodes) <= _MAX_OPERANDS else f"more than {_MAX_OPERANDS} texts are joined"
        case nodes.For():
            return _loop_problem(node)
        case nodes.Filter():
            known = node.name in FILTERS and node.dyn_args is None and node.dyn_kwargs is None
            return None if known else f"unknown filter {node.name!r}"
        case nodes.Test():
            return None if node.name in TESTS and not node.args else f"unknown test {node.name!r}"
        case nodes.Neg():
            return None if isinstance(node.node, nodes.Const) else "arithmetic is not allowed"
    return None if isinstance(node, _ALLOWED) else f"{type(node).__name__.lower()} is not allowed"


def _is_plain(value: object) -> bool:
    """Return whether a constant can be compiled into a template: infinity would become a name there."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return abs(value) <= _MAX_NUMBER
    return value is None or isinstance(value, str | bool)


def _loop_problem(loop: nodes.For) -> str | None:
    if loop.recursive or loop.test is not None:
        return "a loop with a condition or recursion is not allowed"
    if next(loop.find_all(nodes.For), None) is not None:
        return "a loop within a loop is not allowed"
    source: nodes.Node = loop.iter
    while isinstance(source, nodes.Getattr | nodes.Getitem):
        source = source.node
    return None if isinstance(source, nodes.Name) else "a loop must iterate over a value of the payload"
