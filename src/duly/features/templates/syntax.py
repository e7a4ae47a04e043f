"""What a template may consist of: a list of what is allowed, so that what nobody thought of is not."""

from __future__ import annotations

from collections.abc import Iterator

from jinja2 import nodes

from duly.features.templates.filters import FILTERS

LOOP = frozenset({"index", "index0", "first", "last", "length"})
"""What a template may ask its loop."""
TESTS = frozenset({"defined", "undefined", "none", "string", "number", "boolean", "true", "false"})
_MOST_NODES, _DEEPEST = 2_000, 40
_MOST_JOINED = 100
_LARGEST_NUMBER = 10**15
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


def problem(tree: nodes.Template) -> str | None:
    """What is wrong with a template, and in which line; None if nothing is."""
    for number, (node, depth) in enumerate(_walk(tree, 0)):
        if number >= _MOST_NODES or depth > _DEEPEST:
            return "too complicated"
        if found := _wrong(node):
            return f"line {node.lineno}: {found}"
    return None


def _walk(node: nodes.Node, depth: int) -> Iterator[tuple[nodes.Node, int]]:
    yield node, depth
    if depth > _DEEPEST or _asks_the_loop(node):
        return
    for child in node.iter_child_nodes():
        yield from _walk(child, depth + 1)


def _asks_the_loop(node: nodes.Node) -> bool:
    return (
        isinstance(node, nodes.Getattr)
        and node.attr in LOOP
        and isinstance(node.node, nodes.Name)
        and node.node.name == "loop"
    )


def _wrong(node: nodes.Node) -> str | None:
    match node:
        case nodes.Name():
            hidden = node.name.startswith("_") or node.name in ("loop", "self")
            return f"{node.name!r} cannot be read" if hidden else None
        case nodes.Getattr():
            return f"{node.attr!r} cannot be read" if node.attr.startswith("_") else None
        case nodes.Const():
            return None if _is_plain(node.value) else "a number is too large"
        case nodes.Concat():
            return None if len(node.nodes) <= _MOST_JOINED else f"more than {_MOST_JOINED} texts are joined"
        case nodes.For():
            return _wrong_loop(node)
        case nodes.Filter():
            known = node.name in FILTERS and node.dyn_args is None and node.dyn_kwargs is None
            return None if known else f"there is no filter {node.name!r}"
        case nodes.Test():
            return None if node.name in TESTS and not node.args else f"there is no test {node.name!r}"
        case nodes.Neg():
            return None if isinstance(node.node, nodes.Const) else "there is no arithmetic"
    return None if isinstance(node, _ALLOWED) else f"{type(node).__name__.lower()} is not allowed"


def _is_plain(value: object) -> bool:
    """Whether it can be written into the code of a template: infinity, for one, would be a name there."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return abs(value) <= _LARGEST_NUMBER
    return value is None or isinstance(value, str | bool)


def _wrong_loop(loop: nodes.For) -> str | None:
    if loop.recursive or loop.test is not None:
        return "a loop has neither a condition nor recursion"
    if next(loop.find_all(nodes.For), None) is not None:
        return "a loop within a loop is not allowed"
    over: nodes.Node = loop.iter
    while isinstance(over, nodes.Getattr | nodes.Getitem):
        over = over.node
    return None if isinstance(over, nodes.Name) else "a loop goes over a value of the payload"
