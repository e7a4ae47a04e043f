"""The results as text, Markdown and charts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from figures.chart import line_chart

VERBS = {"claim_ms": "claim", "finish_ms": "finish"}
_NAMES = ("p50", "p95", "p99")
_GROWTH = (("per tenfold", "ms_per_tenfold", "{:+.2f}"), ("last / first", "ratio", "{:.2f}"))
_COLUMNS = "| size | claim p50 | p95 | p99 | finish p50 | p95 | p99 |\n|---|---|---|---|---|---|---|"
_HEAD = """# Cost by size

Milliseconds for a claim and for the completion of 100 jobs, each with its commit, on {server} ({options},
defaults otherwise); {repetitions} repetitions, alternating between the databases of an axis. After each
repetition the claimed jobs are replaced by as many jobs of the same orgs, outside of the measured time, so
that the backlog stays constant. *Per tenfold*: additional milliseconds at ten times the size, by least
squares against its logarithm. *Last / first*: ratio of the largest size to the smallest.
"""


def as_text(axis: dict[str, Any]) -> str:
    """Return a table of one axis; the last lines show its growth."""
    lines = [f"{axis['title']}; milliseconds of 100 jobs, p50 / p95 / p99"]
    lines.append(f"  {'':>12} {'claim':^24} {'finish':^24}")
    for point in axis["points"]:
        cells = [" / ".join(f"{point[verb][name]:.1f}" for name in _NAMES) for verb in VERBS]
        lines.append(f"  {point['size']:>12,} {cells[0]:^24} {cells[1]:^24}")
    for label, key, shape in _GROWTH:
        cells = [" / ".join(shape.format(axis["growth"][v][n][key]) for n in _NAMES) for v in VERBS]
        lines.append(f"  {label:>12} {cells[0]:^24} {cells[1]:^24}")
    return "\n".join(lines)


def as_markdown(figures: dict[str, Any]) -> str:
    """Return a page with a table and a chart for each axis."""
    page = _HEAD.format(**figures)
    for axis in figures["axes"]:
        rows = [
            _row(f"{point['size']:,}", [f"{point[v][n]:.1f}" for v in VERBS for n in _NAMES])
            for point in axis["points"]
        ]
        for label, key, shape in _GROWTH:
            cells = [shape.format(axis["growth"][v][n][key]) for v in VERBS for n in _NAMES]
            rows.append(_row(label, cells))
        table = "\n".join([_COLUMNS, *rows])
        title = axis["title"][0].upper() + axis["title"][1:]
        page += f"\n## {title}\n\n{table}\n\n![{title}](growth-{axis['axis']}.svg)\n"
    return page


def _row(first: str, cells: list[str]) -> str:
    return f"| {first} | {' | '.join(cells)} |"


def write(figures: dict[str, Any], folder: Path) -> None:
    """Write the page and its charts."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "growth.md").write_text(as_markdown(figures), encoding="utf-8")
    for axis in figures["axes"]:
        series = {
            f"{word} {name}": [(float(point["along"]), point[verb][name]) for point in axis["points"]]
            for verb, word in VERBS.items()
            for name in ("p50", "p99")
        }
        chart = line_chart(axis["title"], series, x=axis["axis"], y="ms of 100 jobs", log_x=True)
        (folder / f"growth-{axis['axis']}.svg").write_text(chart, encoding="utf-8")
