"""The costs by size as text and Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

_FIGURES = {
    "server": "Server CPU, µs",
    "rows": "WAL without images of pages, bytes",
    "images": "Images of whole pages in the WAL, bytes",
}
_HEAD = """# Cost of a job by history

What one job, one poll or one page costs on {server} ({options}, defaults otherwise), by the number of ended
jobs (half of them on the [plain path](../decisions/0031-plain-path.md), spread over 30 days) and of waiting
jobs, of 20 orgs. Medians of three rounds, alternating between the databases. Every step starts after a
checkpoint: the first change of a page after it writes an image of the whole page, so a step writes the most
images that it can. In parentheses: the ratio to the first column.
"""


def costs_as_text(points: Sequence[dict[str, Any]]) -> str:
    """Return the tables as text."""
    lines = []
    for name, title in _FIGURES.items():
        lines.append(title)
        lines += [
            f"  {cells[0]:<26}" + "".join(f"{cell:>19}" for cell in cells[1:])
            for cells in _rows(points, name)
        ]
    return "\n".join(lines)


def write_costs(figures: dict[str, Any], folder: Path) -> None:
    """Write the page."""
    points, page = figures["costs"], _HEAD.format(**figures)
    for name, title in _FIGURES.items():
        header, *rows = ("| " + " | ".join(cells) + " |" for cells in _rows(points, name))
        page += "\n".join([f"\n## {title}\n", header, "|---" * (len(points) + 1) + "|", *rows, ""])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "growth-costs.md").write_text(page, encoding="utf-8")


def _rows(points: Sequence[dict[str, Any]], name: str) -> Iterator[list[str]]:
    """Yield the titles of the columns, then a row for each step."""
    sizes = [f"{_short(point['history'])} + {_short(point['waiting'])}" for point in points]
    yield ["ended + waiting", *sizes]
    for step in points[0]["steps"]:
        first, *others = [_value(point["steps"][step], name) for point in points]
        ratios = [f" ({value / first:.2f})" if first > 10 else "" for value in others]
        cells = [f"{value:,.0f}{ratio}" for value, ratio in zip(others, ratios, strict=True)]
        yield [step, f"{first:,.0f}", *cells]


def _value(cost: dict[str, float], name: str) -> float:
    return cost["wal"] - cost["images"] if name == "rows" else cost[name]


def _short(count: int) -> str:
    return f"{count // 1_000_000}M" if count >= 1_000_000 else f"{count // 1_000}k"
